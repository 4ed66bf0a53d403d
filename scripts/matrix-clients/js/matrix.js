// kafkajs against one log: node matrix.js BOOTSTRAP TOPIC. Prints a line an operation, as ../go/main.go does.
const { CompressionTypes, Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'matrix', brokers: [bootstrap], logLevel: logLevel.NOTHING })
const [group, transactional] = [`${topic}-group`, `${topic}-transactions`]
const codecs = [CompressionTypes.None, CompressionTypes.GZIP] // the others are packages of others
const perCodec = 500
const base = 1_700_000_000_000
const value = (number) => `record ${String(number).padStart(6, '0')}, with text that can be compressed, compressed, compressed`
const message = (number) => ({ key: `${number}`, value: value(number), headers: { number: `${number}` }, timestamp: `${base + number}` })

function same(what, wanted, found) {
  if (String(wanted) !== String(found)) throw new Error(`${what}: ${found}, not ${wanted}`)
}

async function withAdmin(work) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

async function consumed(consumer, name, isDone) {
  const found = new Map()
  await consumer.connect()
  await consumer.subscribe({ topics: [name], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error))
    consumer.run({
      eachMessage: async ({ message: each }) => {
        if (found.has(`${each.value}`)) reject(new Error(`${each.value} came twice`))
        if (`${each.headers.number}` !== `${each.key}`) reject(new Error(`${each.key} has other headers`))
        found.set(`${each.value}`, each)
        if (isDone(found)) resolve()
      },
    }).catch(reject)
  })
  return found
}

const operations = {
  create: () => withAdmin(async (admin) => {
    const topics = [topic, transactional].map((name) => ({ topic: name, numPartitions: 3, replicationFactor: 1, configEntries: [{ name: 'retention.ms', value: '-1' }] }))
    await admin.createTopics({ topics })
    same('partitions', 3, (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length)
  }),
  write: async () => {
    const producer = kafka.producer({ idempotent: true })
    await producer.connect()
    for (const [place, compression] of codecs.entries()) {
      await producer.send({ topic, compression, messages: Array.from({ length: perCodec }, (_, number) => message(place * perCodec + number)) })
    }
    await producer.disconnect()
  },
  read: null, // it reads as a member of a group alone
  group: async () => {
    const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 })
    const found = await consumed(consumer, topic, (all) => all.size >= perCodec * codecs.length)
    for (let number = 0; number < perCodec * codecs.length; number++) if (!found.has(value(number))) throw new Error(`record ${number} is missing`)
    await consumer.stop() // commits
    await consumer.disconnect()
    const offsets = await withAdmin((admin) => admin.fetchOffsets({ groupId: group, topics: [topic] }))
    same('committed', perCodec * codecs.length, offsets[0].partitions.reduce((sum, each) => sum + Number(each.offset), 0))
  },
  share: null,
  times: () => withAdmin(async (admin) => {
    const ends = await admin.fetchTopicOffsets(topic)
    const at = await admin.fetchTopicOffsetsByTimestamp(topic, base + 500)
    const sum = (offsets) => offsets.reduce((all, each) => all + Number(each.offset), 0)
    same('records after the time', 500, sum(ends) - sum(at))
  }),
  transaction: async () => {
    const producer = kafka.producer({ transactionalId: transactional, idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    for (const [number, end] of ['abort', 'commit', 'abort'].entries()) {
      const transaction = await producer.transaction()
      await transaction.send({ topic: transactional, messages: Array.from({ length: 10 }, (_, each) => message(number * 10 + each)) })
      if (end === 'commit') await transaction.sendOffsets({ consumerGroupId: transactional, topics: [{ topic, partitions: [{ partition: 0, offset: '7' }] }] })
      await transaction[end]()
    }
    await producer.disconnect()
    const consumer = kafka.consumer({ groupId: `${transactional}-reads`, maxWaitTimeInMs: 100, readUncommitted: false })
    const found = await consumed(consumer, transactional, (all) => all.size >= 10)
    await consumer.disconnect()
    same('committed records', '10,11,12,13,14,15,16,17,18,19', [...found.values()].map((each) => `${each.key}`).sort())
    const offsets = await withAdmin((admin) => admin.fetchOffsets({ groupId: transactional, topics: [topic] }))
    same('the offset in the transaction', '7', offsets[0].partitions.find((each) => each.partition === 0).offset)
  },
  configs: () => withAdmin(async (admin) => {
    const resource = { type: 2, name: topic }
    await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '123456789' }] }] })
    const found = await admin.describeConfigs({ includeSynonyms: false, resources: [{ ...resource, configNames: ['retention.ms'] }] })
    same('retention.ms', '123456789', found.resources[0].configEntries[0].configValue)
  }),
  groups: () => withAdmin(async (admin) => {
    const listed = await admin.listGroups()
    if (!listed.groups.some((each) => each.groupId === group)) throw new Error(`${group} is not listed`)
    same('state', 'Empty', (await admin.describeGroups([group])).groups[0].state)
    await admin.deleteGroups([group])
  }),
  delete: () => withAdmin(async (admin) => {
    await admin.fetchTopicOffsets(topic) // without it the next call knows no leader
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '5' }] })
    same('start', '5', (await admin.fetchTopicOffsets(topic)).find((each) => each.partition === 0).low)
    await admin.deleteTopics({ topics: [topic, transactional] })
  }),
}

async function main() {
  for (const [name, operation] of Object.entries(operations)) {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('not within 40 s')), 40_000).unref())
    try {
      if (operation !== null) await Promise.race([operation(), late])
      console.log(name, operation === null ? 'none' : 'ok')
    } catch (error) {
      console.log(name, `${error.message}`.replaceAll('\n', ' '))
    }
  }
  process.exit(0)
}

main()
