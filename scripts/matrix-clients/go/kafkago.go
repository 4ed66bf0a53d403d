package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

func kafkaGo(bootstrap, topic string) map[string]func(context.Context) error {
	client := &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: 10 * time.Second}
	group := topic + "-group"
	readAll := func(ctx context.Context, found seen, reader *kafka.Reader, done func() bool) error {
		for !done() {
			each, err := reader.FetchMessage(ctx)
			if err != nil {
				return fmt.Errorf("after %d records: %w", len(found), err)
			}
			if err := found.add(each.Value); err != nil {
				return err
			}
			if len(each.Headers) != 1 || string(each.Headers[0].Value) != string(each.Key) {
				return fmt.Errorf("%q has headers %v", each.Key, each.Headers)
			}
			if reader.Config().GroupID != "" && found.all() {
				return reader.CommitMessages(ctx, each)
			}
		}
		return nil
	}
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			entries := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}}
			answer, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: entries}}})
			if err != nil {
				return err
			}
			if answer.Errors[topic] != nil {
				return answer.Errors[topic]
			}
			found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
			if err != nil {
				return err
			}
			return want("partitions", 3, len(found.Topics[0].Partitions))
		},
		"write": func(ctx context.Context) error {
			by := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
			for place, codec := range codecs {
				writer := &kafka.Writer{Addr: kafka.TCP(bootstrap), Topic: topic, Compression: by[codec], RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, Balancer: &kafka.Hash{}}
				var messages []kafka.Message
				for each := range perCodec {
					number := place*perCodec + each
					headers := []kafka.Header{{Key: "number", Value: fmt.Append(nil, number)}}
					messages = append(messages, kafka.Message{Key: fmt.Append(nil, number), Value: value(number), Headers: headers, Time: time.UnixMilli(int64(1_700_000_000_000 + number))})
				}
				err := writer.WriteMessages(ctx, messages...)
				writer.Close()
				if err != nil {
					return fmt.Errorf("%s: %w", codec, err)
				}
			}
			return nil
		},
		"read": func(ctx context.Context) error {
			found := seen{}
			for partition := range 3 {
				connection, err := kafka.DialLeader(ctx, "tcp", bootstrap, topic, partition)
				if err != nil {
					return err
				}
				end, err := connection.ReadLastOffset()
				connection.Close()
				if err != nil {
					return err
				}
				reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: partition, MaxWait: 100 * time.Millisecond})
				err = readAll(ctx, found, reader, func() bool { return reader.Offset() >= end })
				reader.Close()
				if err != nil {
					return err
				}
			}
			return found.check()
		},
		"group": func(ctx context.Context) error {
			found := seen{}
			reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond})
			defer reader.Close()
			if err := readAll(ctx, found, reader, found.all); err != nil {
				return err
			}
			return found.check()
		},
		"times": func(ctx context.Context) error {
			left := int64(0)
			for partition := range 3 {
				answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(partition), kafka.TimeOffsetOf(partition, time.UnixMilli(1_700_000_000_500))}}})
				if err != nil {
					return err
				}
				found := answer.Topics[topic][0]
				if found.Error != nil {
					return found.Error
				}
				for offset := range found.Offsets {
					left += found.LastOffset - offset
				}
			}
			return want("records behind the time", 500, left)
		},
		"configs": func(ctx context.Context) error {
			set := []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: "123456789", ConfigOperation: kafka.ConfigOperationSet}}
			altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: set}}})
			if err != nil {
				return err
			}
			if altered.Resources[0].Error != nil {
				return altered.Resources[0].Error
			}
			found, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"}}}})
			if err != nil {
				return err
			}
			return want("retention.ms", "123456789", found.Resources[0].ConfigEntries[0].ConfigValue)
		},
		"groups": func(ctx context.Context) error {
			listed, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
			if err != nil {
				return err
			}
			is := false
			for _, each := range listed.Groups {
				is = is || each.GroupID == group
			}
			if !is {
				return fmt.Errorf("%s is not listed", group)
			}
			for { // its member leaves in its own time
				described, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
				if err != nil {
					return err
				}
				if described.Groups[0].GroupState == "Empty" {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			deleted, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
			if err != nil {
				return err
			}
			return deleted.Errors[group]
		},
		"delete": func(ctx context.Context) error {
			answer, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
			if err != nil {
				return err
			}
			return answer.Errors[topic]
		},
	}
}
