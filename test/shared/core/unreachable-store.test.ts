import t from 'tap'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'

const closed = '127.0.0.1:1'
const postgresUri = `postgresql://u:secret@${closed}/x`
const mongoUri = `mongodb://u:secret@${closed}/x?serverSelectionTimeoutMS=50&directConnection=true`

const refusalOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => t.fail('it answers'),
    (error: unknown) => error,
  )

t.test('a database that is out of reach is named, with its host and the reason', async t => {
  const env = { DATABASE_URL: postgresUri, MONGODB_URI: mongoUri }
  const postgres = openPostgres(postgresUri, { max: 1, onError: () => {} })
  t.teardown(() => postgres.close())
  const first = startupErrorMessage(await refusalOf(postgres.query('select 1')), env)!
  t.match(
    first,
    /^PostgreSQL at 127\.0\.0\.1:1 is out of reach: connect ECONNREFUSED .*\nCheck DATABASE_URL/,
  )
  const asked = async () => (await openMongo(mongoUri)).close()
  const second = startupErrorMessage(await refusalOf(asked()), env)!
  t.match(second, /^MongoDB at 127\.0\.0\.1:1 is out of reach: .+\nCheck MONGODB_URI/)
  t.notMatch(first + second, /secret/)
})

t.test('a password that is not escaped is not taken for a host', async t => {
  const postgres = openPostgres(postgresUri, { max: 1, onError: () => {} })
  t.teardown(() => postgres.close())
  const refusal = await refusalOf(postgres.query('select 1'))
  for (const part of ['se/cret', 'se?cret', 'se#cret', 'secret@']) {
    const env = { DATABASE_URL: `postgresql://u:${part}@db.example/x` }
    t.notMatch(startupErrorMessage(refusal, env), /cret|u:se/, part)
  }
})
