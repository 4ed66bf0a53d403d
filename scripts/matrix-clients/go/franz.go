package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func franz(bootstrap, topic string) map[string]func(context.Context) error {
	client := func(options ...kgo.Opt) (*kgo.Client, *kadm.Client, error) {
		c, err := kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap), kgo.FetchMaxWait(100*time.Millisecond))...)
		if err != nil {
			return nil, nil, err
		}
		return c, kadm.NewClient(c), nil
	}
	admin := func(work func(*kadm.Client) error) error {
		c, a, err := client()
		if err != nil {
			return err
		}
		defer c.Close()
		return work(a)
	}
	group := topic + "-group"
	transactional := topic + "-transactions"
	record := func(topic string, number int) *kgo.Record {
		headers := []kgo.RecordHeader{{Key: "number", Value: fmt.Append(nil, number)}}
		return &kgo.Record{Topic: topic, Key: fmt.Append(nil, number), Value: value(number), Headers: headers, Timestamp: time.UnixMilli(int64(1_700_000_000_000 + number))}
	}
	readAll := func(ctx context.Context, c *kgo.Client) error {
		found := seen{}
		for !found.all() {
			fetches := c.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return fmt.Errorf("after %d records: %w", len(found), err)
			}
			for _, each := range fetches.Records() {
				if err := found.add(each.Value); err != nil {
					return err
				}
				if len(each.Headers) != 1 || string(each.Headers[0].Value) != string(each.Key) {
					return fmt.Errorf("%q has headers %v", each.Key, each.Headers)
				}
			}
		}
		return found.check()
	}
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			return admin(func(a *kadm.Client) error {
				for _, name := range []string{topic, transactional} {
					if _, err := a.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("-1")}, name); err != nil {
						return err
					}
				}
				found, err := a.ListTopics(ctx, topic)
				if err != nil {
					return err
				}
				return want("partitions", 3, len(found[topic].Partitions))
			})
		},
		"write": func(ctx context.Context) error {
			by := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
			for place, codec := range codecs {
				c, _, err := client(kgo.ProducerBatchCompression(by[codec]), kgo.ProducerLinger(5*time.Millisecond))
				if err != nil {
					return err
				}
				var records []*kgo.Record
				for number := range perCodec {
					records = append(records, record(topic, place*perCodec+number))
				}
				err = c.ProduceSync(ctx, records...).FirstErr()
				c.Close()
				if err != nil {
					return fmt.Errorf("%s: %w", codec, err)
				}
			}
			return nil
		},
		"read": func(ctx context.Context) error {
			c, _, err := client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			if err != nil {
				return err
			}
			defer c.Close()
			return readAll(ctx, c)
		},
		"group": func(ctx context.Context) error {
			c, a, err := client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
			if err != nil {
				return err
			}
			defer c.Close()
			if err := readAll(ctx, c); err != nil {
				return err
			}
			if err := c.CommitUncommittedOffsets(ctx); err != nil {
				return err
			}
			offsets, err := a.FetchOffsets(ctx, group)
			if err != nil {
				return err
			}
			sum := int64(0)
			offsets.Each(func(each kadm.OffsetResponse) { sum += each.At })
			return want("committed", perCodec*len(codecs), sum)
		},
		"share": func(ctx context.Context) error {
			shared := topic + "-share"
			reset := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "share.auto.offset.reset", Value: kadm.StringPtr("earliest")}
			resource := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: shared}
			resource.Configs = append(resource.Configs, reset)
			asked := kmsg.NewPtrIncrementalAlterConfigsRequest()
			asked.Resources = append(asked.Resources, resource)
			c, a, err := client(kgo.ConsumeTopics(topic), kgo.ShareGroup(shared))
			if err != nil {
				return err
			}
			defer c.Close()
			if answer, err := asked.RequestWith(ctx, c); err != nil {
				return err
			} else if err := want("error of the configs", 0, answer.Resources[0].ErrorCode); err != nil {
				return err
			}
			found, released := seen{}, seen{}
			for !found.all() {
				fetches := c.PollFetches(ctx)
				if err := fetches.Err(); err != nil {
					return fmt.Errorf("after %d records: %w", len(found), err)
				}
				for _, each := range fetches.Records() {
					if each.Key[len(each.Key)-1] == '7' && !released[string(each.Value)] {
						released[string(each.Value)] = true
						each.Ack(kgo.AckRelease)
						continue
					}
					each.Ack(kgo.AckAccept)
					if err := found.add(each.Value); err != nil {
						return err
					}
				}
			}
			if err := found.check(); err != nil {
				return err
			}
			if err := c.FlushAcks(ctx); err != nil {
				return err
			}
			if err := want("released", perCodec*len(codecs)/10, len(released)); err != nil {
				return err
			}
			described, err := a.DescribeShareGroups(ctx, shared)
			if err != nil {
				return err
			}
			if err := want("members", 1, len(described[shared].Members)); err != nil {
				return err
			}
			c.Close()
			return admin(func(a *kadm.Client) error {
				groups, err := a.DescribeShareGroupOffsets(ctx, shared)
				if err != nil {
					return err
				}
				for partition := range int32(3) {
					each, _ := groups[shared].Offsets.Lookup(topic, partition)
					if err := want("lag", 0, each.Lag); err != nil {
						return err
					}
				}
				offsets := kadm.Offsets{}
				offsets.AddOffset(topic, 0, 5, -1)
				if altered, err := a.AlterShareGroupOffsets(ctx, shared, offsets); err != nil {
					return err
				} else if err := altered.Error(); err != nil {
					return err
				}
				if groups, err = a.DescribeShareGroupOffsets(ctx, shared); err != nil {
					return err
				}
				each, _ := groups[shared].Offsets.Lookup(topic, 0)
				if err := want("start offset", 5, each.StartOffset); err != nil {
					return err
				}
				if deleted, err := a.DeleteShareGroupOffsets(ctx, shared, topic); err != nil {
					return err
				} else if err := deleted.Error(); err != nil {
					return err
				}
				_, err = a.DeleteGroup(ctx, shared)
				return err
			})
		},
		"times": func(ctx context.Context) error {
			return admin(func(a *kadm.Client) error {
				found, err := a.ListOffsetsAfterMilli(ctx, 1_700_000_000_000+500, topic)
				if err != nil {
					return err
				}
				ends, err := a.ListEndOffsets(ctx, topic)
				if err != nil {
					return err
				}
				left := int64(0)
				ends.Each(func(each kadm.ListedOffset) { at, _ := found.Lookup(topic, each.Partition); left += each.Offset - at.Offset })
				return want("records behind the time", 500, left)
			})
		},
		"transaction": func(ctx context.Context) error {
			c, _, err := client(kgo.TransactionalID(transactional))
			if err != nil {
				return err
			}
			for number, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
				if err := c.BeginTransaction(); err != nil {
					return err
				}
				for each := range committed {
					if err := c.ProduceSync(ctx, record(transactional, number*committed+each)).FirstErr(); err != nil {
						return err
					}
				}
				if err := c.EndTransaction(ctx, end); err != nil {
					return err
				}
			}
			c.Close()
			// consume, transform, produce: offsets within the transaction
			session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(bootstrap), kgo.TransactionalID(transactional+"-2"), kgo.ConsumerGroup(transactional),
				kgo.ConsumeTopics(transactional), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
			if err != nil {
				return err
			}
			defer session.Close()
			count := 0
			for count < committed {
				fetches := session.PollFetches(ctx)
				if err := fetches.Err(); err != nil {
					return err
				}
				if err := session.Begin(); err != nil {
					return err
				}
				fetches.EachRecord(func(each *kgo.Record) {
					count++
					if number := string(each.Key); len(number) != 2 || number[0] != '1' {
						err = fmt.Errorf("record %s of an aborted transaction was read", number)
					}
					session.Produce(ctx, &kgo.Record{Topic: topic + "-made", Value: each.Value}, nil)
				})
				if err != nil {
					return err
				}
				if done, err := session.End(ctx, kgo.TryCommit); err != nil || !done {
					return fmt.Errorf("the transaction with offsets did not commit: %w", err)
				}
			}
			return want("committed records", committed, count)
		},
		"configs": func(ctx context.Context) error {
			return admin(func(a *kadm.Client) error {
				set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("123456789")}}
				answers, err := a.AlterTopicConfigs(ctx, set, topic)
				if err != nil {
					return err
				}
				if answers[0].Err != nil {
					return answers[0].Err
				}
				found, err := a.DescribeTopicConfigs(ctx, topic)
				if err != nil {
					return err
				}
				for _, each := range found[0].Configs {
					if each.Key == "retention.ms" {
						return want("retention.ms", "123456789", each.MaybeValue())
					}
				}
				return fmt.Errorf("retention.ms is not told")
			})
		},
		"groups": func(ctx context.Context) error {
			return admin(func(a *kadm.Client) error {
				listed, err := a.ListGroups(ctx)
				if err != nil {
					return err
				}
				if _, is := listed[group]; !is {
					return fmt.Errorf("%s is not among %v", group, listed.Groups())
				}
				described, err := a.DescribeGroups(ctx, group)
				if err != nil {
					return err
				}
				if err := want("state", "Empty", described[group].State); err != nil {
					return err
				}
				lag, err := a.Lag(ctx, group)
				if err != nil {
					return err
				}
				if err := want("lag", 0, lag[group].Lag.Total()); err != nil {
					return err
				}
				_, err = a.DeleteGroup(ctx, group)
				return err
			})
		},
		"delete": func(ctx context.Context) error {
			return admin(func(a *kadm.Client) error {
				offsets := kadm.Offsets{}
				offsets.AddOffset(topic, 0, 5, -1)
				if answers, err := a.DeleteRecords(ctx, offsets); err != nil {
					return err
				} else if err := answers.Error(); err != nil {
					return err
				}
				starts, err := a.ListStartOffsets(ctx, topic)
				if err != nil {
					return err
				}
				first, _ := starts.Lookup(topic, 0)
				if err := want("start", 5, first.Offset); err != nil {
					return err
				}
				answers, err := a.DeleteTopics(ctx, topic, transactional)
				if err != nil {
					return err
				}
				return answers.Error()
			})
		},
	}
}
