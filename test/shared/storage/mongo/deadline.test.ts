import { MongoClient } from 'mongodb'
import t from 'tap'
import { deadline, deadlineMs } from '#shared/storage/mongo/deadline.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

const memoriesOf = (options: string) =>
  new MongoClient(`mongodb://127.0.0.1/vault${options}`).db().collection<MemoryDocument>('memories')

t.test('an operation has its own time, or more when the URI says so', async t => {
  t.equal(deadlineMs(memoriesOf('')), 5_000)
  t.equal(deadlineMs(memoriesOf(''), 60_000), 60_000)
  t.equal(deadlineMs(memoriesOf('?socketTimeoutMS=20000')), 20_000)
  t.equal(deadlineMs(memoriesOf('?socketTimeoutMS=20000'), 60_000), 60_000)
  t.equal(deadlineMs(memoriesOf('?socketTimeoutMS=1000')), 5_000, 'it is never shortened')
})

t.test('its signal ends with a timeout', async t => {
  const signal = deadline(memoriesOf(''), 1)
  await new Promise(resolve => signal.addEventListener('abort', resolve))
  t.equal(signal.reason.name, 'TimeoutError')
})
