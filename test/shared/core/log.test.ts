import '#test/setup/env.ts'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

/** What a few lines write to the log, in a process of their own. */
function logged(lines: string): { line: string; entry: Record<string, never> }[] {
  const program = `
    import { createLog } from '#shared/core/log.ts'
    import { openMongo } from '#shared/storage/mongo/connect.ts'
    import { openPostgres } from '#shared/storage/postgres/connect.ts'
    const log = createLog('debug', 'test')
    const caught = promise => promise.then(() => {}, err => log.warn({ err }, 'it.failed'))
    ${lines}`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    env: process.env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return stdout
    .trim()
    .split('\n')
    .map(line => ({ line, entry: JSON.parse(line) as Record<string, never> }))
}

t.test('an error of a store is logged without the values it was about', async t => {
  const entries = logged(`
    const mongo = await openMongo(process.env.MONGODB_URI.replace('/?', '/log_test?'))
    const document = { _id: crypto.randomUUID(), vault: 'v', text: 'canary one' }
    await caught(mongo.memories.insertMany([document, document], { ordered: false }))
    await mongo.memories.deleteMany({ vault: 'v' })
    await mongo.close()
    const { query, close } = openPostgres(process.env.DATABASE_URL, { max: 1, onError() {} })
    await caught(query('select $1::jsonb', ['{"text": "canary two \\\\u0000"}']))
    await caught(query('select * from jsonb_to_recordset($1) as a(n int)', ['[{"n": "canary three"}]']))
    await caught(query('select n from nowhere'))
    await caught((async () => JSON.parse('{"text": canary four'))())
    await caught((async () => { throw new Error('outer', { cause: new Error('"canary five"') }) })())
    await caught((async () => { throw 'canary six' })())
    await close()`)
  t.equal(entries.length, 7)
  for (const { line } of entries) t.notMatch(line, /canary/, line)
  t.match(
    entries.map(({ entry }) => entry.err),
    [
      { type: 'MongoBulkWriteError', code: 11_000, message: /E11000/, stack: [/ at /] },
      { code: '22P05' },
      { code: '22P02', message: 'invalid input syntax for type integer: "…"' },
      { code: '42P01', message: 'relation "nowhere" does not exist' },
      { type: 'SyntaxError' },
      { type: 'Error', message: 'outer', cause: { message: '"…"' } },
      { type: 'string' },
    ],
  )
})

t.test('what slips into a field is struck out', async t => {
  const [entry] = logged(
    `log.info({ text: 'canary', memory: { content: 'canary' }, n: 1 }, 'it.was')`,
  )
  t.notMatch(entry?.line, /canary/)
  t.match(entry?.entry, { n: 1, msg: 'it.was', text: '[redacted]' })
})
