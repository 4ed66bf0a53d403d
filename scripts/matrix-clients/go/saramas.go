package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

func saramas(bootstrap, topic string) map[string]func(context.Context) error {
	brokers := []string{bootstrap}
	config := func() *sarama.Config {
		c := sarama.NewConfig()
		c.Version = sarama.MaxVersion
		c.Producer.Return.Successes = true
		c.Producer.RequiredAcks = sarama.WaitForAll
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
		c.Consumer.Offsets.Initial = sarama.OffsetOldest
		c.Consumer.MaxWaitTime = 100 * time.Millisecond
		return c
	}
	admin := func(work func(sarama.ClusterAdmin) error) error {
		a, err := sarama.NewClusterAdmin(brokers, config())
		if err != nil {
			return err
		}
		defer a.Close()
		return work(a)
	}
	group := topic + "-group"
	transactional := topic + "-transactions"
	message := func(topic string, number int) *sarama.ProducerMessage {
		headers := []sarama.RecordHeader{{Key: []byte("number"), Value: fmt.Append(nil, number)}}
		return &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(fmt.Append(nil, number)), Value: sarama.ByteEncoder(value(number)), Headers: headers, Timestamp: time.UnixMilli(int64(1_700_000_000_000 + number))}
	}
	ends := func(client sarama.Client, time int64) (sum int64, err error) {
		for partition := range int32(3) {
			offset, err := client.GetOffset(topic, partition, time)
			if err != nil {
				return 0, err
			}
			sum += offset
		}
		return sum, nil
	}
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			return admin(func(a sarama.ClusterAdmin) error {
				forever := "-1"
				for _, name := range []string{topic, transactional} {
					if err := a.CreateTopic(name, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &forever}}, false); err != nil {
						return err
					}
				}
				found, err := a.DescribeTopics([]string{topic})
				if err != nil {
					return err
				}
				return want("partitions", 3, len(found[0].Partitions))
			})
		},
		"write": func(ctx context.Context) error {
			by := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}
			for place, codec := range codecs {
				c := config()
				c.Producer.Compression = by[codec]
				producer, err := sarama.NewSyncProducer(brokers, c)
				if err != nil {
					return err
				}
				var messages []*sarama.ProducerMessage
				for number := range perCodec {
					messages = append(messages, message(topic, place*perCodec+number))
				}
				err = producer.SendMessages(messages)
				producer.Close()
				if err != nil {
					return fmt.Errorf("%s: %w", codec, err)
				}
			}
			return nil
		},
		"read": func(ctx context.Context) error {
			consumer, err := sarama.NewConsumer(brokers, config())
			if err != nil {
				return err
			}
			defer consumer.Close()
			messages := make(chan *sarama.ConsumerMessage)
			for partition := range int32(3) {
				part, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
				if err != nil {
					return err
				}
				defer part.AsyncClose()
				go func() {
					for each := range part.Messages() {
						messages <- each
					}
				}()
			}
			found := seen{}
			for !found.all() {
				select {
				case each := <-messages:
					if err := found.add(each.Value); err != nil {
						return err
					}
					if len(each.Headers) != 1 || string(each.Headers[0].Value) != string(each.Key) {
						return fmt.Errorf("%q has headers %v", each.Key, each.Headers)
					}
				case <-ctx.Done():
					return fmt.Errorf("%d records came", len(found))
				}
			}
			return found.check()
		},
		"group": func(ctx context.Context) error {
			member, err := sarama.NewConsumerGroup(brokers, group, config())
			if err != nil {
				return err
			}
			all := &collector{found: seen{}, over: make(chan struct{})}
			within, cancel := context.WithCancel(ctx)
			go func() { <-all.over; cancel() }()
			err = member.Consume(within, []string{topic}, all)
			cancel()
			if err != nil {
				return err
			}
			if err := member.Close(); err != nil {
				return err
			}
			if all.wrong != nil {
				return all.wrong
			}
			if err := all.found.check(); err != nil {
				return err
			}
			return admin(func(a sarama.ClusterAdmin) error {
				offsets, err := a.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2}})
				if err != nil {
					return err
				}
				sum := int64(0)
				for _, each := range offsets.Blocks[topic] {
					sum += each.Offset
				}
				return want("committed", perCodec*len(codecs), sum)
			})
		},
		"times": func(ctx context.Context) error {
			client, err := sarama.NewClient(brokers, config())
			if err != nil {
				return err
			}
			defer client.Close()
			at, err := ends(client, 1_700_000_000_000+500)
			if err != nil {
				return err
			}
			end, err := ends(client, sarama.OffsetNewest)
			if err != nil {
				return err
			}
			return want("records behind the time", 500, end-at)
		},
		"transaction": func(ctx context.Context) error {
			c := config()
			c.Producer.Transaction.ID = transactional
			producer, err := sarama.NewSyncProducer(brokers, c)
			if err != nil {
				return err
			}
			for number, commits := range []bool{false, true, false} {
				if err := producer.BeginTxn(); err != nil {
					return err
				}
				for each := range committed {
					sent := message(transactional, number*committed+each)
					sent.Partition = 0
					if _, _, err := producer.SendMessage(sent); err != nil {
						return err
					}
				}
				if commits {
					err = producer.CommitTxn()
				} else {
					err = producer.AbortTxn()
				}
				if err != nil {
					return err
				}
			}
			producer.Close()
			reading := config()
			reading.Consumer.IsolationLevel = sarama.ReadCommitted
			consumer, err := sarama.NewConsumer(brokers, reading)
			if err != nil {
				return err
			}
			defer consumer.Close()
			count, client := 0, make(chan *sarama.ConsumerMessage)
			for partition := range int32(3) {
				part, err := consumer.ConsumePartition(transactional, partition, sarama.OffsetOldest)
				if err != nil {
					return err
				}
				defer part.AsyncClose()
				go func() {
					for each := range part.Messages() {
						client <- each
					}
				}()
			}
			for {
				select {
				case each := <-client:
					count++
					if each.Key[0] != '1' || len(each.Key) != 2 {
						return fmt.Errorf("record %s of an aborted transaction was read", each.Key)
					}
				case <-time.After(time.Second):
					return want("committed records", committed, count)
				}
			}
		},
		"configs": func(ctx context.Context) error {
			return admin(func(a sarama.ClusterAdmin) error {
				long := "123456789"
				entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &long}}
				if err := a.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false); err != nil {
					return err
				}
				found, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}})
				if err != nil {
					return err
				}
				return want("retention.ms", long, found[0].Value)
			})
		},
		"groups": func(ctx context.Context) error {
			return admin(func(a sarama.ClusterAdmin) error {
				listed, err := a.ListConsumerGroups()
				if err != nil {
					return err
				}
				if _, is := listed[group]; !is {
					return fmt.Errorf("%s is not among %v", group, listed)
				}
				described, err := a.DescribeConsumerGroups([]string{group})
				if err != nil {
					return err
				}
				if err := want("state", "Empty", described[0].State); err != nil {
					return err
				}
				return a.DeleteConsumerGroup(group)
			})
		},
		"delete": func(ctx context.Context) error {
			return admin(func(a sarama.ClusterAdmin) error {
				if err := a.DeleteRecords(topic, map[int32]int64{0: 5}); err != nil {
					return err
				}
				for _, name := range []string{topic, transactional} {
					if err := a.DeleteTopic(name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

type collector struct {
	lock  sync.Mutex
	found seen
	wrong error
	over  chan struct{}
	once  sync.Once
}

func (c *collector) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (c *collector) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c *collector) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for each := range claim.Messages() {
		c.lock.Lock()
		if err := c.found.add(each.Value); err != nil {
			c.wrong = err
		}
		session.MarkMessage(each, "")
		if c.found.all() || c.wrong != nil {
			c.once.Do(func() { close(c.over) })
		}
		c.lock.Unlock()
	}
	return nil
}
