import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/chat-stream.ts'
import {
  respondJson,
  respondWith,
  streamBytes,
  neverRespond,
  stallAfter,
} from '#test/support/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/model-provider.ts'
import { startWeb } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readDocuments } from '#test/support/insert-memories.ts'
import { ageRows } from '#test/support/alter.ts'
import { releaseIdempotencyKeys } from '#test/support/alter-jobs.ts'
import { countRows } from '#test/support/observe.ts'

t.setTimeout(0)
const provider = await startModelProvider(t)
const config = await createTestConfig(t, provider.env)
const backend = await createTestBackend(t, { config })
await startJobWorkers(backend, 'ingest')

const bodyOf = (content: string): string =>
  JSON.stringify({ model: 'openai/gpt-5', stream: true, messages: [{ role: 'user', content }] })
const headersOf = (key: string) => ({
  'x-memory-key': key,
  authorization: `Bearer ${providerKey('openai')}`,
  'content-type': 'application/json',
})

t.test('a web process killed in the middle of an answer loses nothing the user said', async t => {
  const web = await startWeb(t, config, provider.env)
  const key = await buildKey(backend)
  provider.respondNext(stallAfter(chatCompletionEvents(['Half'], { end: false })))
  const response = await fetch(`${web.base}/v1/chat/completions`, {
    method: 'POST',
    headers: headersOf(key),
    body: bodyOf('Remember the milk.'),
  })
  await response.body!.getReader().read()
  web.kill('SIGKILL')
  await web.exited
  await ageRows(backend, 'open_exchanges', '3 minutes')
  t.match(await sweepAll(backend), { exchanges: 1 })
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 1)
  t.match(await readDocuments(backend, key), [{ role: 'user', text: 'Remember the milk.' }])
})

t.test('killed, and the client sends the same to another process: said once', async t => {
  const web = await startWeb(t, config, provider.env)
  const { base } = await startTestApi(t, backend)
  const key = await buildKey(backend)
  const request = { method: 'POST', headers: headersOf(key), body: bodyOf('Remember the bread.') }
  provider.respondNext(stallAfter(chatCompletionEvents(['Half'], { end: false })))
  const response = await fetch(`${web.base}/v1/chat/completions`, request)
  await response.body!.getReader().read()
  web.kill('SIGKILL')
  await web.exited
  provider.respondNext(respondWith(chatCompletionEvents(['Whole.'])))
  t.match(await (await fetch(`${base}/v1/chat/completions`, request)).text(), 'Whole.')
  await ageRows(backend, 'open_exchanges', '3 minutes')
  t.match(await sweepAll(backend), { exchanges: 1 })
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length > 1)
  const stored = (await readDocuments(backend, key)).map(({ role, text }) => `${role}: ${text}`)
  t.same(stored.toSorted(), ['assistant: Whole.', 'user: Remember the bread.'])
})

t.test(
  'killed, swept, and sent again with its key: the answer is stored, the turn once',
  async t => {
    const { base } = await startTestApi(t, backend)
    for (const minutes of [3, 30]) {
      const web = await startWeb(t, config, provider.env)
      const key = await buildKey(backend)
      const request = {
        method: 'POST',
        headers: { ...headersOf(key), 'idempotency-key': 'one' },
        body: bodyOf('Remember the salt.').replace('"stream":true', '"stream":false'),
      }
      provider.respondNext(neverRespond)
      const asked = provider.requests.length
      const first = fetch(`${web.base}/v1/chat/completions`, request).catch(() => {})
      await waitUntil('the provider is asked', () => provider.requests.length > asked)
      await waitUntil('opened', async () => (await countRows(backend, 'open_exchanges')) > 0)
      web.kill('SIGKILL')
      await Promise.all([web.exited, first])
      await ageRows(backend, 'open_exchanges', '3 minutes')
      t.match(await sweepAll(backend), { exchanges: 1 })
      const again = () => fetch(`${base}/v1/chat/completions`, request)
      t.equal((await again()).status, 409, 'until it must be dead')
      await releaseIdempotencyKeys(backend)
      await ageRows(backend, 'unanswered_turns', `${minutes} minutes`)
      provider.respondNext(respondJson(chatCompletion('Salt it is.')))
      t.match(await (await again()).json(), { choices: [{ message: { content: 'Salt it is.' } }] })
      const stored = async () =>
        (await readDocuments(backend, key)).map(({ role, text }) => `${role}: ${text}`).toSorted()
      await waitUntil('stored', async () => (await stored()).length > 1)
      t.same(await stored(), ['assistant: Salt it is.', 'user: Remember the salt.'])
      t.match(await (await again()).json(), { choices: [{ message: { content: 'Salt it is.' } }] })
      t.equal(await countRows(backend, 'open_exchanges'), 0)
    }
  },
)

t.test('a web process that is told to stop stores what it has heard', async t => {
  const web = await startWeb(t, config, provider.env)
  const key = await buildKey(backend)
  const held = Promise.withResolvers<void>()
  const chunks = chatCompletionEvents(['To the ', 'end.'])
  provider.respondNext(async (_, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream' })
    await answer.write(chunks[0]!)
    await held.promise
    for (const chunk of chunks.slice(1)) await answer.write(chunk)
    answer.end()
  })
  const response = await fetch(`${web.base}/v1/chat/completions`, {
    method: 'POST',
    headers: headersOf(key),
    body: bodyOf('Tell me all.'),
  })
  web.kill('SIGTERM')
  await waitUntil('it drains', () => web.output().includes('process.draining'))
  held.resolve()
  t.equal(await response.text(), chunks.join(''))
  t.match(await web.exited, { code: 0 })
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 2)
  t.match(await readDocuments(backend, key), [{}, { text: 'To the end.' }])
})

const mebibyte = 1024 * 1024

t.test('a reader who takes his time with 100 MB costs less than half of them', async t => {
  const web = await startWeb(t, config, provider.env)
  const key = await buildKey(backend)
  const residentMiB = (): number =>
    (Number(readFileSync(`/proc/${web.pid}/statm`, 'utf8').split(' ')[1]) * 4) / 1024
  const total = 100 * mebibyte
  const event = chatCompletionEvents(['x'.repeat(16_000)], { end: false })[0]!

  type Reading = { pauseMs: number; bytesMax: number; mode: 'off' | 'on' }
  const read = ({ pauseMs, bytesMax, mode }: Reading): Promise<number> =>
    new Promise((resolve, reject) => {
      provider.respondNext(streamBytes(bytesMax, event))
      const sent = request(`${web.base}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headersOf(key), 'x-memory-mode': mode },
      })
      sent.on('response', answer => {
        let bytes = 0
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (pauseMs === 0 || bytes > 4 * mebibyte) return
          answer.pause()
          setTimeout(() => answer.resume(), pauseMs)
        })
        answer.on('end', () => resolve(bytes))
        answer.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(bodyOf('Write me a very long book.'))
    })
  // As fast as it goes: what any stream of this length leaves to the garbage collector.
  await read({ pauseMs: 0, bytesMax: total, mode: 'off' })
  const before = residentMiB()
  let most = before
  const watching = setInterval(() => (most = Math.max(most, residentMiB())), 20)
  t.ok((await read({ pauseMs: 20, bytesMax: total, mode: 'off' })) > total)
  clearInterval(watching)
  t.comment(`${before.toFixed(0)} MiB before, ${(most - before).toFixed(1)} MiB more at most`)
  // Nearly always 10 to 25; what the collector leaves for later differs by some MiB from run to run.
  t.ok(most - before < 50, `${(most - before).toFixed(1)} MiB`)

  await read({ pauseMs: 0, bytesMax: 10 * mebibyte, mode: 'on' })
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length > 2)
  const heard = (await readDocuments(backend, key)).reduce((sum, { text }) => sum + text.length, 0)
  t.ok(heard < 5 * mebibyte, 'what is stored of it is bounded')
})
