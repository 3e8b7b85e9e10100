import t from 'tap'
import { withEmbeddingTimeout } from '#shared/models/model-refusal.ts'

const never = new Promise<number>(() => {})

t.test(
  'a hosted model that does not answer is its provider’s, the built-in one has a busy machine',
  async t => {
    await t.rejects(withEmbeddingTimeout(never, 'openai/text-embedding-3-small', 1), {
      reason: 'upstream',
      message: 'The embedding model openai/text-embedding-3-small did not answer in time',
    })
    await t.rejects(withEmbeddingTimeout(never, 'local', 1), {
      reason: 'unavailable',
      message: 'The service is too busy to answer in time',
      hint: 'Try again in a few seconds; the operator can start more processes',
    })
    t.equal(await withEmbeddingTimeout(Promise.resolve(3), 'local', 7_500), 3)
  },
)
