import { request } from 'node:http'
import t, { type Test } from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { cancelScheduledExpiries, scheduleExpiries } from '#shared/vault/base/expiries.postgres.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import {
  checkOut,
  commit,
  ingestTexts,
  readUsageEvents,
} from '#test/support/start/consolidation.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories, readBill, resolveCaller } from '#test/support/start/insert-memories.ts'
import { killAtSteps, type Scene } from '#test/support/checks/kill-at-step.ts'
import {
  billedEventsOfVault,
  countDocuments,
  countRows,
  storedDocuments,
  vaultRow,
  countSnapshotParts,
} from '#test/support/checks/observe.ts'
import { countAcceptedFiles, jobsOf, vaultOfOperation } from '#test/support/checks/observe-jobs.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)
t.jobs = 2

const respondAsync = { prefer: 'respond-async' }
const ndjson = { 'content-type': 'application/x-ndjson' }

/** The answer of an operation, when it is done. */
async function outcomeOf(client: TestClient, operation: string) {
  const told = async () => (await client.get(`/v1/operations/${operation}`)).body
  await waitUntil('the operation is done', async () => (await told()).state === 'done')
  return (await told()).outcome.body
}

async function newVault({ backend, base, newKey }: Scene) {
  const key = await newKey()
  const scope = await readVaultScope(backend, key)
  return { key, scope, vault: scope.vault, client: createTestClient(base, key) }
}

const linesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, n) =>
    JSON.stringify({ content: `memory number ${n}`, timestamp: 1_700_000_000_000 + n }),
  )

async function upload(client: TestClient, lines: string[], headers = {}): Promise<string> {
  const options = { body: lines.join('\n'), headers: { ...ndjson, ...respondAsync, ...headers } }
  return (await client.send('POST', '/v1/memory/upload', options)).body.operation_id
}

/** Every line once: in the vault, in the answer, on the bill and in the debt. */
async function checkFile(t: Test, { backend }: Scene, client: TestClient, operation: string) {
  const outcome = await outcomeOf(client, operation)
  const count: number = outcome.stats.inputItems
  t.match(outcome, {
    status: 'complete',
    stats: { memories: count, stored: count, skipped: 0, failed: 0 },
  })
  const { body } = await client.get('/v1/memory/export')
  t.equal(body.length, count)
  t.equal(new Set(body.map(({ content }: { content: string }) => content)).size, count)
  const vault = await vaultOfOperation(backend, operation)
  const { rawUnits, rawTokens } = await vaultRow(backend, vault)
  t.equal(rawUnits, count)
  t.match(await billedEventsOfVault(backend, vault), [{ id: operation, memoryTokens: rawTokens }])
  t.equal(await countAcceptedFiles(backend, vault), 0)
  return count
}

const notes = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `note ${n}`, at: n, tokens: 2 }))

killAtSteps(t, {
  'a file is stored: every line once': {
    killed: 'worker',
    async begin(t, open) {
      const scene = await open()
      const { client, vault } = await newVault(scene)
      const operation = await upload(client, linesOf(1_500))
      return {
        steps: [
          { at: `before 2 insert ${vault}` },
          { at: `before 2 commit ${operation}` },
          { at: `after 2 commit ${operation}` },
        ],
        async afterwards() {
          t.equal(await checkFile(t, scene, client, operation), 1_500)
        },
      }
    },
  },

  'a file arrives: nothing of it is there, and sent again it is stored once': {
    killed: 'api',
    working: true,
    async begin(t, open) {
      const scene = await open()
      const { client, key } = await newVault(scene)
      const staged = (): Promise<number> => countRows(scene.backend, 'operation_steps')
      const lines = linesOf(700)
      const once = { 'idempotency-key': 'once' }
      const sendPart = (count: number) => async (base: string) => {
        const before = await staged()
        const headers = { ...ndjson, ...once, authorization: `Bearer ${key}` }
        const sending = request(`${base}/v1/memory/upload`, { method: 'POST', headers })
        sending.on('error', () => {})
        sending.write(`${lines.slice(0, count).join('\n')}\n`)
        await waitUntil('some of it is staged', async () => (await staged()) > before)
      }
      return {
        steps: [210, 420, 630].map(count => ({ during: sendPart(count) })),
        async afterwards() {
          t.same((await client.get('/v1/memory/export')).body, [])
          const operation = await upload(client, lines, once)
          t.equal(await checkFile(t, scene, client, operation), 700)
        },
      }
    },
  },

  'a vault index is saved: all of it or nothing, and every memory is found': {
    killed: 'api',
    async begin(t, open) {
      const scene = await open()
      const { client, key, vault } = await newVault(scene)
      const texts = Array.from({ length: 150 }, (_, n) => ({ text: `heron number ${n} nests` }))
      await insertMemories(scene.backend, key, texts)
      const saved = async (): Promise<boolean> =>
        (await countSnapshotParts(scene.backend, vault)) > 0
      const found = async (from: TestClient): Promise<unknown> =>
        (await from.post('/v1/memory/search', { query: 'heron number 7 nests', limit: 1 })).body
          .memories[0].content
      // The index is saved a second after the answer.
      const search = (base: string): void => {
        found(createTestClient(base, key)).then(
          text => t.equal(text, 'heron number 7 nests'),
          () => t.fail('the search is answered before the process dies'),
        )
      }
      return {
        steps: [
          { at: `before 1 commit ${vault}`, during: search },
          {
            before: async () => void t.notOk(await saved()),
            at: `after 1 commit ${vault}`,
            during: search,
          },
        ],
        async afterwards() {
          t.ok(await saved())
          t.equal(await found(client), 'heron number 7 nests')
        },
      }
    },
  },

  'a batch is committed: once, and nothing is lost': {
    killed: 'api',
    working: true,
    async begin(t, open) {
      const scene = await open()
      const { backend } = scene
      const texts = ['We adopted a kitten', 'She is called Ada', 'I start in Lisbon on Monday']
      const batches = await Promise.all(
        ['before 1 insert', 'before 1 update', 'before 1 aggregate', 'after 2 commit'].map(
          async at => {
            const own = await newVault(scene)
            await ingestTexts(own.client, texts)
            const { body } = await checkOut(own.client)
            return { ...own, at: `${at} ${own.vault}`, batch: body.batch_id, ids: body.source_ids }
          },
        ),
      )
      const entries = [
        { text: 'The user adopted a kitten, Ada.', importance: 6 },
        { text: 'The user moved to Lisbon.', importance: 9 },
      ]
      return {
        steps: batches.map(({ at, key, batch }) => ({
          at,
          during: base => commit(createTestClient(base, key), batch, entries),
        })),
        async afterwards() {
          for (const { at, client, vault, batch, ids } of batches) {
            t.equal((await checkOut(client)).body.batch_id, null, `${at}: it is not lent`)
            const again = await commit(client, batch, [{ text: 'other words', importance: 1 }])
            const raw = { units: 0, est_tokens: 0 }
            t.match(again, {
              status: 200,
              body: {
                already_committed: true,
                sources_consolidated: 3,
                created: [{ importance: 6 }, { importance: 9 }],
                reflection: { unconsolidated: { raw, tier2: { count: 2, importance: 15 } } },
              },
            })
            const question = { query: 'kitten, Lisbon', limit: 10, tiers: [2] }
            const { body: found } = await client.post('/v1/memory/search', question)
            const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id).sort()
            t.same(idsOf(found.memories), idsOf(again.body.created), 'each is found once')
            await waitUntil('its job is done', async () => {
              const jobs = await jobsOf<{ batch: string }>(backend, 'commit-apply')
              return jobs.every(({ state, data }) => state === 'completed' || data.batch !== batch)
            })
            t.equal((await readUsageEvents(backend, vault, 'commit')).length, 1)
            const stored = await storedDocuments(backend, vault)
            const sources = stored.filter(({ _id }) => ids.includes(_id))
            t.equal(sources.length, 3)
            for (const source of sources) t.same(source.consolidated_by, [batch])
          }
        },
      }
    },
  },

  'vaults are cleared and memories deleted: others finish, and count what there was': {
    killed: 'worker',
    async begin(t, open) {
      const scene = await open()
      const { backend } = scene
      const newTenant = async (rows: number) => {
        const own = await newVault(scene)
        const bare = { vectors: false }
        return { ...own, ids: await insertStoredMemories(backend, own.scope, notes(rows), bare) }
      }
      const clearings = await Promise.all(
        ['before 1 delete', 'before 2 delete', 'before 3 delete'].map(async at => {
          const { client, vault } = await newTenant(2_500)
          return { at: `${at} ${vault}`, client, vault, operation: '' }
        }),
      )
      const single = await newTenant(500)
      return {
        steps: clearings.map(clearing => ({
          at: clearing.at,
          async before() {
            const { body } = await clearing.client.send('DELETE', '/v1/memory', {
              headers: respondAsync,
            })
            clearing.operation = body.operation_id
          },
        })),
        async afterwards() {
          const ids = [...single.ids.slice(0, 499), mintId()]
          const deletion = await single.client.post('/v1/memory/delete-ids', { ids }, respondAsync)
          const { operation_id } = deletion.body
          for (const { client, vault, operation } of clearings) {
            t.match(await outcomeOf(client, operation), { deleted: 2_500 })
            t.equal(await countDocuments(backend, vault), 0)
          }
          const outcome = await outcomeOf(single.client, operation_id)
          t.match(outcome, { deleted: 499, not_found: 1 })
          t.equal(await readBill(backend, operation_id), 998)
        },
      }
    },
  },

  'what has expired is removed: it is invisible, and counts once': {
    killed: 'api',
    async begin(t, open) {
      const { backend, ...scene } = await open()
      const { key, client, scope, vault } = await newVault({ backend, ...scene })
      const bare = { vectors: false }
      await insertStoredMemories(backend, scope, notes(4_500), bare)
      const at = Date.now()
      await backend.mongo.memories.updateMany(
        { vault: { $eq: vault } },
        { $set: { expires_at: new Date(at) } },
      )
      const id = mintId()
      await scheduleExpiries(backend.postgres, [{ id, vault, expiresAt: at }])
      await cancelScheduledExpiries(backend.postgres.query, [id])
      const staying = [{ text: 'this one stays', at: 4_500, tokens: 7 }]
      await insertStoredMemories(backend, scope, staying, bare)
      /** What a reader is told: all but what is over, or to come again. */
      const look = async (reader: TestClient): Promise<boolean> => {
        const { status, body } = await reader.get('/v1/memory/list?limit=200')
        if (status === 503) return false
        const texts = body.items.map((item: { text: string }) => item.text)
        t.same(texts, ['this one stays'])
        return true
      }
      return {
        steps: ['before 2 update', 'before 3 commit', 'after 1 commit'].map(step => ({
          at: `${step} ${vault}`,
          // A read waits 5 s for the removal and answers without it, which a busy machine may need longer for.
          during: async base => {
            for (;;) await look(createTestClient(base, key))
          },
        })),
        async afterwards() {
          await waitUntil('it can be read', () => look(client))
          const { epoch } = scope
          t.equal(await backend.mongo.memories.countDocuments({ vault, epoch }), 1)
          const { keyRow } = await resolveCaller(backend, key)
          t.match(keyRow, { rawUnits: 1, rawTokens: 7, hasExpired: false })
          type Row = { state: string; outcome: { body: { expired: number } } }
          const { items } = (await client.get('/v1/operations?kind=expire')).body as {
            items: Row[]
          }
          t.ok(items.every(({ state }) => state === 'done'))
          const expired = items.map(({ outcome }) => outcome.body.expired)
          const total = expired.reduce((sum, count) => sum + count, 0)
          t.equal(total, 4_500)
        },
      }
    },
  },

  'a vault is copied: everything arrives, once': {
    killed: 'worker',
    async begin(t, open) {
      const scene = await open()
      const { backend } = scene
      const [source, destination] = [await newVault(scene), await newVault(scene)]
      await insertMemories(backend, source.key, notes(2_600))
      await insertMemories(backend, destination.key, notes(100))
      const asked = { destination_key: destination.key }
      const { body } = await source.client.post('/v1/memory/transfer', asked, respondAsync)
      const operation: string = body.operation_id
      return {
        steps: [
          { at: `before 2 insert ${destination.vault}` },
          { at: `before 2 commit ${destination.vault}` },
          { at: `after 2 commit ${destination.vault}` },
        ],
        async afterwards() {
          t.match(await outcomeOf(source.client, operation), {
            copied: 2_500,
            deduped_or_skipped: 100,
            failed: 0,
            estimated_tokens: 2_500 * 2,
          })
          const stored = await storedDocuments(backend, destination.vault)
          t.equal(stored.length, 2_600)
          t.equal(new Set(stored.map(({ text }) => text)).size, 2_600)
          const question = { query: 'note 2599', limit: 1 }
          const found = await destination.client.post('/v1/memory/search', question)
          t.equal(found.body.memories[0].content, 'note 2599')
        },
      }
    },
  },

  'a vault is embedded anew: both models end with everything': {
    killed: 'worker',
    async begin(t, open) {
      const provider = await startEmbeddingProvider(t)
      const scene = await open({ OLLAMA_BASE_URL: provider.baseUrl })
      const { key, client, vault } = await newVault(scene)
      await insertMemories(scene.backend, key, notes(1_000))
      const embeddings = 'ollama/double'
      const { body } = await client.post('/v1/memory/reembed', { embeddings }, respondAsync)
      return {
        steps: [{ at: `before 2 update ${vault}` }, { at: `after 1 commit ${vault}` }],
        async afterwards() {
          t.match(await outcomeOf(client, body.operation_id), { embedded: 1_000 })
          for (const model of ['local', embeddings]) {
            const warm = await client.post('/v1/memory/warmup', {}, { 'x-embedding-model': model })
            t.equal(warm.body.memories_loaded, 1_000, model)
          }
        },
      }
    },
  },
})
