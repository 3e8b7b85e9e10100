import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  checkJournal,
  sendExchanges,
  waitUntilSettled,
} from '#test/support/checks/exchange-journal.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { killAtSteps } from '#test/support/checks/kill-at-step.ts'
import { finishedAt } from '#test/support/checks/observe-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)
t.jobs = 2

/**
 * The promise is 15 s: a missed heartbeat, the next look for one, the first delay. Ten times that, since
 * other tests keep the machine busy; without heartbeats it would be the 15 minutes of a job's expiry.
 */
const redeliveredWithinMs = 150_000

const said = (content: string) => ({ messages: [{ role: 'user', content }] })

killAtSteps(t, {
  'exchanges are stored, one waits for its vectors: others do it, once, and soon': {
    killed: 'worker',
    hasHeartbeats: true,
    async begin(t, open) {
      const provider = await startEmbeddingProvider(t)
      const { backend, base, newKey } = await open({
        EMBEDDINGS: 'openai/double',
        OPENAI_API_KEY: 'sk-test',
        OPENAI_BASE_URL: provider.baseUrl,
      })
      const [key, busy] = [await newKey(), await newKey()]
      const { vault } = (await resolveCaller(backend, busy)).scope
      const client = createTestClient(base, key)
      const store = async (content: string) =>
        t.equal((await client.post('/v1/memory/ingest?wait=true', said(content))).status, 200)
      let hanging = ''
      let killedAt = 0
      const journal = sendExchanges(() => base, busy, { pauseMs: 50 })
      return {
        steps: [
          {
            async during() {
              await store('first')
              provider.hang()
              const before = provider.calls.length
              const answer = await client.post('/v1/memory/ingest', said('second'))
              hanging = answer.body.operation_id
              await waitUntil('it waits for the provider', () => provider.calls.length > before)
              killedAt = Date.now()
            },
          },
          { at: `before 2 insert ${vault}` },
          { at: `before 2 commit ${vault}` },
          { at: `after 2 commit ${vault}` },
        ],
        async afterwards() {
          await store('third')
          await waitUntil('there was some load', () => journal.acknowledged.size > 50)
          await journal.stop()
          await waitUntilSettled(backend, redeliveredWithinMs)
          const ms = (await finishedAt(backend, hanging)).getTime() - killedAt
          t.comment(`redelivered and stored ${(ms / 1_000).toFixed(1)} s after the kill`)
          t.ok(ms < redeliveredWithinMs, `${ms} ms`)
          const acknowledged = new Set(['first', 'second', 'third'])
          await checkJournal(t, backend, key, { acknowledged, unacknowledged: new Set() })
          await checkJournal(t, backend, busy, journal)
        },
      }
    },
  },

  'an API accepts exchanges: what it said is true': {
    killed: 'api',
    working: true,
    async begin(t, open) {
      const { backend, base, newKey } = await open()
      const key = await newKey()
      const { vault } = (await resolveCaller(backend, key)).scope
      let current = base
      let journal: ReturnType<typeof sendExchanges> | undefined
      return {
        steps: ['before 9 commit', 'after 9 commit', 'before 4 commit', 'after 20 commit'].map(
          step => ({
            at: `${step} ${vault}`,
            during(doomed) {
              current = doomed
              journal ??= sendExchanges(() => current, key, { lanes: 12 })
            },
          }),
        ),
        async afterwards() {
          current = base
          const { acknowledged, unacknowledged, statuses, stop } = journal!
          await waitUntil('it goes on', () => acknowledged.size > 100)
          await stop()
          await waitUntilSettled(backend)
          t.comment(`${acknowledged.size} acknowledged, ${unacknowledged.size} not`)
          t.ok((statuses.get(0) ?? 0) > 0, 'requests were cut off')
          await checkJournal(t, backend, key, { acknowledged, unacknowledged })
        },
      }
    },
  },
})
