import { RunnableLambda, RunnableSequence } from '@langchain/core/runnables'
import t from 'tap'
import { VaultRetriever } from '#api/client/adapters/langchain-retriever.ts'
import { vaultClient, VaultError } from '#api/client/client.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

// It would otherwise report what it does to a service of its makers.
process.env.LANGCHAIN_TRACING_V2 = 'false'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const vault = vaultClient(base, await buildKey(backend))
const lines = [
  { content: 'My cat is called Ada.', metadata: { agent_id: 'home' } },
  { content: 'The cat food is bought at the corner shop.', metadata: { agent_id: 'shopping' } },
  { content: 'The invoice of May is paid.', metadata: { agent_id: 'billing' } },
]
await vault.call('POST /v1/memory/upload', {
  body: lines.map(line => `${JSON.stringify(line)}\n`).join(''),
})

t.test('documents are memories, the best first, with what the vault knows of them', async t => {
  const retriever = new VaultRetriever({ vault, limit: 2 })
  const [first, ...others] = await retriever.invoke('what is my cat called?')
  t.equal(first?.pageContent, 'My cat is called Ada.')
  t.match(first?.metadata, { tier: 1, metadata: { agent_id: 'home' } })
  t.equal(first?.id, first?.metadata.id)
  t.notHas(first?.metadata, 'content')
  t.ok(others.length <= 1)
})

t.test('metadata filters, a session has its own', async t => {
  const shopping = new VaultRetriever({ vault, filter: { agent_id: ['shopping', 'billing'] } })
  const found = await shopping.invoke('the cat')
  t.ok(found.length > 0)
  for (const { pageContent } of found) t.not(pageContent, lines[0]!.content)
  t.same(await new VaultRetriever({ vault, sessionId: 'another' }).invoke('the cat'), [])
})

t.test('it is a runnable: in a chain, in a batch, with callbacks', async t => {
  const ended: string[] = []
  const retriever = new VaultRetriever({
    vault,
    limit: 1,
    tags: ['vault'],
    callbacks: [
      {
        handleRetrieverEnd: (documents, _run, _parent, tags) =>
          void ended.push(`${tags?.join()} ${documents.length}`),
      },
    ],
  })
  const chain = RunnableSequence.from([
    retriever,
    RunnableLambda.from((documents: { pageContent: string }[]) => documents[0]?.pageContent),
  ])
  t.equal(await chain.invoke('what is my cat called?'), 'My cat is called Ada.')
  t.equal((await retriever.batch(['the cat', 'the invoice of May'])).length, 2)
  t.same(ended, ['vault 1', 'vault 1', 'vault 1'])
})

t.test('a refusal reaches the program', async t => {
  const refused = new VaultRetriever({ vault, limit: 0 })
  await t.rejects(refused.invoke('the cat'), VaultError)
})
