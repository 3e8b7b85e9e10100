import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

const { backend, base, provider, newKey } = await startProxyFixture(t)
await startJobWorkers(backend)

async function ask(key: string, headers: Record<string, string>) {
  const [openai] = proxyDialects
  const response = await callModel(base, key, openai!, 'Which editor do I use?', { headers })
  const text = await response.text()
  const sent = provider.requests.at(-1)!.body.toString()
  return { code: response.status, status: response.headers.get('x-memory-status'), text, sent }
}

const subagent = { 'x-openai-subagent': 'collab_spawn' }

// The first call of a process is slow: recall would give up.
await ask(await newKey(), {})

t.test('X-Memory-Asides: a subagent is recalled for; nothing of it is stored', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: 'I use the editor Helix.' }])
  const without = await ask(key, subagent)
  t.equal(without.status, 'aside')
  t.notMatch(without.sent, 'Helix')
  t.equal((await ask(key, { ...subagent, 'x-memory-asides': 'none' })).status, 'aside')

  const recalled = await ask(key, { ...subagent, 'x-memory-asides': 'recall' })
  t.equal(recalled.status, 'ok')
  t.match(recalled.sent, 'Helix')
  const off = { ...subagent, 'x-memory-asides': 'recall', 'x-memory-mode': 'write' }
  t.notMatch((await ask(key, off)).sent, 'Helix', 'a switch only narrows what others allow')
  await waitUntilIdle(backend)
  t.equal((await readDocuments(backend, key)).length, 1)

  t.equal((await ask(key, { 'x-memory-asides': 'recall' })).status, 'ok')
  await waitUntilIdle(backend)
  t.equal((await readDocuments(backend, key)).length, 3, 'a call of a person is stored as ever')

  const { code, text } = await ask(key, { ...subagent, 'x-memory-asides': 'store' })
  t.equal(code, 400)
  t.match(text, 'X-Memory-Asides must be one of none, recall')
})
