import t from 'tap'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import { graftCandidates, readQueries } from '#shared/vault/copy/candidates.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'

t.test('queries are read to a bound, each and all', t => {
  const long = Array.from({ length: 100 }, (_, number) => String(number).padEnd(32_000, 'x'))
  t.equal(readQueries(long).join('').length, 50_000)
  t.equal(readQueries(long.slice(0, 1)).join('').length, 16_000)
  t.same(readQueries(['cats', 'dogs', 'cats']), ['cats', 'dogs'])
  t.end()
})

t.test('the work ends when the client has gone', async t => {
  const backend = await createTestBackend(t)
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'the violin is in the attic' }])
  const caller = await resolveCaller(backend, key)
  const gone = new AbortController()
  let embedded = 0
  const local = localEmbedder()
  const embedder: typeof local = {
    ...local,
    async embedQueries(texts, signal) {
      embedded += texts.length
      if (embedded >= 8) gone.abort(new Error('gone'))
      return local.embedQueries(texts, signal)
    },
  }
  const queries = Array.from({ length: 100 }, (_, number) => `violin ${number}`)
  const queryVectors = new QueryVectorCache()
  const question = { embedder, queries, threshold: 0.5, signal: gone.signal }
  await t.rejects(graftCandidates({ ...backend, queryVectors }, caller, question), {
    message: 'gone',
  })
  t.equal(embedded, 8)
})
