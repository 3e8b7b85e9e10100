import pg from 'pg'
import t from 'tap'
import { chatCompletion, chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import { respondJson, stallAfter } from '#test/support/doubles/model-provider/answers.ts'
import {
  asks,
  completionsPath as path,
  startCompletions,
} from '#test/support/samples/completions.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** What the user says is written while the provider works, and before the client gets anything of the answer. */

const { provider, backend, base, user, last } = await startCompletions(t)
const blocker = new pg.Client({ connectionString: backend.config.databaseUrl })
await blocker.connect()
t.teardown(() => blocker.end())

const call = (headers: Record<string, string>, more: object = {}) =>
  fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ ...asks('Remember the milk.'), memory_mode: 'write', ...more }),
  })

/** Nothing can be written into the table until the returned function has ended. */
async function holdOpenExchanges(): Promise<() => Promise<unknown>> {
  await blocker.query('begin')
  await blocker.query('lock table open_exchanges in access exclusive mode')
  return () => blocker.query('rollback')
}

/** Ends the connections that wait for the table, as a server that goes away. @returns how many there were */
async function cutWaitingConnections(): Promise<number> {
  const { rows } = await blocker.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}

t.test('the provider is asked before the row is written; the client waits for it', async t => {
  const { headers, stored } = await user()
  provider.respondNext(respondJson(chatCompletion('Noted.')))
  const asked = provider.requests.length
  const release = await holdOpenExchanges()
  let status: number | undefined
  const answering = call(headers).then(response => {
    status = response.status
    return response.text()
  })
  await waitUntil('the provider has answered', async () => {
    return provider.requests.length > asked && (await last().outcome) === 'answered'
  })
  t.equal(status, undefined, 'the client has nothing yet')
  await release()
  t.match(await answering, /Noted\./)
  t.equal(status, 200)
  t.same(await stored(), [
    ['user', 'Remember the milk.'],
    ['assistant', 'Noted.'],
  ])
})

t.test(
  '503: what cannot be written down leaves the provider, and the client gets nothing of it',
  async t => {
    const { headers } = await user()
    provider.respondNext(stallAfter(chatCompletionEvents(['Half'], { end: false })))
    const asked = provider.requests.length
    const release = await holdOpenExchanges()
    const answering = call(headers, { stream: true })
    await waitUntil('the provider is asked', () => provider.requests.length > asked)
    await waitUntil('the write waits', async () => (await cutWaitingConnections()) > 0)
    const response = await answering
    t.equal(response.status, 503)
    t.notMatch(await response.text(), /Half/)
    t.equal(await last().outcome, 'left')
    await release()
  },
)
