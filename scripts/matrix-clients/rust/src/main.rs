//! rskafka against one log: matrix BOOTSTRAP TOPIC. Prints a line an operation, as ../go/main.go does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;

const PER_CODEC: i64 = 200;
const PARTITIONS: i32 = 3;
type Outcome = Result<(), Box<dyn std::error::Error>>;

fn value(number: i64) -> String {
    format!("record {number:06}, with text that can be compressed, compressed, compressed")
}

fn record(number: i64) -> Record {
    Record {
        key: Some(number.to_string().into_bytes()),
        value: Some(value(number).into_bytes()),
        headers: BTreeMap::from([("number".to_owned(), number.to_string().into_bytes())]),
        timestamp: Utc.timestamp_millis_opt(1_700_000_000_000 + number).unwrap(),
    }
}

fn same(what: &str, wanted: i64, found: i64) -> Outcome {
    if wanted == found {
        return Ok(());
    }
    Err(format!("{what}: {found}, not {wanted}").into())
}

async fn partition(client: &Client, topic: &str, number: i32) -> Result<PartitionClient, rskafka::client::error::Error> {
    client.partition_client(topic, number, UnknownTopicHandling::Retry).await
}

async fn create(client: &Client, topic: &str) -> Outcome {
    client.controller_client()?.create_topic(topic, PARTITIONS, 1, 5_000).await?;
    let found = client.list_topics().await?.into_iter().find(|each| each.name == topic).ok_or("the topic is not listed")?;
    same("partitions", PARTITIONS as i64, found.partitions.len() as i64)
}

const CODECS: [(&str, Compression); 5] = [
    ("none", Compression::NoCompression),
    ("gzip", Compression::Gzip),
    ("snappy", Compression::Snappy),
    ("lz4", Compression::Lz4),
    ("zstd", Compression::Zstd),
];

async fn write(client: &Client, topic: &str) -> Outcome {
    for (place, (name, codec)) in CODECS.into_iter().enumerate() {
        let first = place as i64 * PER_CODEC;
        let to = partition(client, topic, place as i32 % PARTITIONS).await?;
        let records = (first..first + PER_CODEC).map(record).collect();
        to.produce(records, codec).await.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

async fn read(client: &Client, topic: &str) -> Outcome {
    let mut found = BTreeSet::new();
    for number in 0..PARTITIONS {
        let from = partition(client, topic, number).await?;
        let (mut offset, end) = (from.get_offset(OffsetAt::Earliest).await?, from.get_offset(OffsetAt::Latest).await?);
        while offset < end {
            for each in from.fetch_records(offset, 1..1_000_000, 1_000).await?.0 {
                if each.record.headers.get("number") != each.record.key.as_ref() {
                    return Err("a record has other headers".into());
                }
                if !found.insert(each.record.value.unwrap_or_default()) {
                    return Err("a record came twice".into());
                }
                offset = each.offset + 1;
            }
        }
    }
    for number in 0..PER_CODEC * CODECS.len() as i64 {
        if !found.contains(value(number).as_bytes()) {
            return Err(format!("record {number} is missing").into());
        }
    }
    Ok(())
}

async fn times(client: &Client, topic: &str) -> Outcome {
    let mut left = 0;
    for number in 0..PARTITIONS {
        let of = partition(client, topic, number).await?;
        let at = of.get_offset(OffsetAt::Timestamp(Utc.timestamp_millis_opt(1_700_000_000_500).unwrap())).await?;
        let end = of.get_offset(OffsetAt::Latest).await?;
        left += if at < 0 { 0 } else { end - at };
    }
    same("records behind the time", 500, left)
}

async fn delete(client: &Client, topic: &str) -> Outcome {
    let first = partition(client, topic, 0).await?;
    first.delete_records(5, 5_000).await?;
    same("start", 5, first.get_offset(OffsetAt::Earliest).await?)?;
    client.controller_client()?.delete_topic(topic, 5_000).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, topic] = given.as_slice() else { panic!("usage: matrix BOOTSTRAP TOPIC") };
    let client = ClientBuilder::new(vec![bootstrap.clone()]).build().await.expect("a connection");
    for name in ["create", "write", "read", "group", "share", "times", "transaction", "configs", "groups", "delete"] {
        let work = async {
            match name {
                "create" => create(&client, topic).await.map(|_| true),
                "write" => write(&client, topic).await.map(|_| true),
                "read" => read(&client, topic).await.map(|_| true),
                "times" => times(&client, topic).await.map(|_| true),
                "delete" => delete(&client, topic).await.map(|_| true),
                _ => Ok(false),
            }
        };
        match tokio::time::timeout(Duration::from_secs(40), work).await {
            Ok(Ok(there)) => println!("{name} {}", if there { "ok" } else { "none" }),
            Ok(Err(error)) => println!("{name} {error}"),
            Err(_) => println!("{name} not within 40 s"),
        }
    }
}
