// One of Go's clients of Kafka against one log: matrix CLIENT BOOTSTRAP TOPIC.
//
// Prints a line an operation, in the order of scripts/matrix: its name, and "ok", "none" (the client has no such thing) or what went wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	perCodec  = 200 // records that are written with each compression
	committed = 10  // records of a transaction
)

var (
	names    = []string{"create", "write", "read", "group", "share", "times", "transaction", "configs", "groups", "delete"}
	codecs   = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	errNone  = errors.New("none")
	clients  = map[string]func(bootstrap, topic string) map[string]func(context.Context) error{"franz-go": franz, "sarama": saramas, "kafka-go": kafkaGo}
	longTime = 40 * time.Second
)

func main() {
	if len(os.Args) != 4 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: matrix franz-go|sarama|kafka-go BOOTSTRAP TOPIC")
		os.Exit(2)
	}
	operations := clients[os.Args[1]](os.Args[2], os.Args[3])
	for _, name := range names {
		fmt.Println(name, outcome(operations[name]))
	}
}

func outcome(operation func(context.Context) error) string {
	if operation == nil {
		return "none"
	}
	ctx, cancel := context.WithTimeout(context.Background(), longTime)
	defer cancel()
	switch err := operation(ctx); {
	case err == nil:
		return "ok"
	case errors.Is(err, errNone):
		return "none"
	default:
		return err.Error()
	}
}

// value is that of a record by its number, the same for every client.
func value(number int) []byte { return []byte(fmt.Sprintf("record %06d, with text that can be compressed, compressed, compressed", number)) }

// seen counts records and finds one that came twice or is none of ours.
type seen map[string]bool

func (s seen) add(value []byte) error {
	if s[string(value)] {
		return fmt.Errorf("%q came twice", value)
	}
	s[string(value)] = true
	return nil
}

func (s seen) all() bool { return len(s) >= perCodec*len(codecs) }

func (s seen) check() error {
	for number := range perCodec * len(codecs) {
		if !s[string(value(number))] {
			return fmt.Errorf("record %d of %d is missing", number, perCodec*len(codecs))
		}
	}
	return nil
}

func want(what string, wanted, found any) error {
	if fmt.Sprint(wanted) != fmt.Sprint(found) {
		return fmt.Errorf("%s: %v, not %v", what, found, wanted)
	}
	return nil
}
