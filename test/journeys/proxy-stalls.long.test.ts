import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { streamBytes, stallAfter } from '#test/support/doubles/model-provider/answers.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'

/** Somebody stops in the middle of an answer: the client, who reads no more, or the provider. */

const provider = await startModelProvider(t)
const patience = { CLIENT_PATIENCE_SECONDS: '1', PROVIDER_IDLE_SECONDS: '4' }
const backend = await createTestBackend(t, { env: { ...provider.env, ...patience } })
const { base } = await startTestApi(t, backend)
const { newKey } = await createProxyAccount(backend, base)
await startJobWorkers(backend)

const mebibyte = 2 ** 20
const event = (letters: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: letters } }] })}\n\n`

const bodyOf = (content: string): string =>
  JSON.stringify({ model: modelNames.openai, stream: true, messages: [{ role: 'user', content }] })

/** Asks over a socket of its own, which reads only when it is told to. */
function asker(path: string, key: string, body: string, at = base) {
  const socket = connect(Number(new URL(at).port), '127.0.0.1')
  const heard = { bytes: 0, text: '' }
  socket.on('data', chunk => {
    heard.bytes += chunk.length
    heard.text = (heard.text + chunk.toString('latin1')).slice(-64)
  })
  socket.on('error', () => {})
  socket.pause()
  socket.write(
    [
      `POST ${path} HTTP/1.1`,
      'host: localhost',
      'content-type: application/json',
      `authorization: Bearer ${key}`,
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  )
  t.teardown(() => socket.destroy())
  return { socket, heard }
}

const wordsOf = async (key: string) => {
  await waitUntilSettled(backend)
  return (await readDocuments(backend, key)).map(({ role, text, interrupted }) => ({
    role,
    begin: text.slice(0, 20),
    interrupted,
  }))
}

t.test('a client that stops reading is left, and what arrived is stored', async t => {
  const key = await newKey()
  const before = await provider.connections()
  provider.respondNext(streamBytes(100 * mebibyte, event('x'.repeat(16_000))))
  const begun = performance.now()
  const { socket, heard } = asker('/v1/chat/completions', key, bodyOf('Write me a book.'))
  await waitUntil('the provider is asked', () => provider.requests.at(-1)?.response.status === 200)
  t.equal(await provider.requests.at(-1)!.outcome, 'left', 'the provider is told')
  const ms = performance.now() - begun
  t.ok(ms > 900, `after ${ms.toFixed(0)} ms`)
  const connections = () => provider.connections()
  await waitUntil('its connection is free', async () => (await connections()) <= before + 1)
  await waitUntil('both are stored', async () => (await readDocuments(backend, key)).length > 1)
  const words = await wordsOf(key)
  t.match(words[0], { role: 'user', begin: 'Write me a book.' })
  t.match(words[1], { role: 'assistant', begin: 'xxxx', interrupted: true })
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.resume()
  await closed
  t.notMatch(heard.text, /\r\n0\r\n\r\n$/, 'no clean end is pretended')
})

t.test('a client that takes its time is not, nor one that waits for a model', async t => {
  // All pauses together are longer than the patience, each is a fifth of it: a machine may stall.
  const patient = { ...backend.config, clientTimeoutMs: 12_000, providerIdleMs: 120_000 }
  const { base: at } = await startTestApi(t, await createTestBackend(t, { config: patient }))
  const key = await newKey()
  const kept = asker('/v1/chat/completions', key, bodyOf('First.'), at)
  kept.socket.resume()
  await waitUntil('answered', () => kept.heard.text.endsWith('\r\n0\r\n\r\n'))

  const asked = provider.requests.length
  provider.respondNext(async (_seen, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream' })
    await answer.write(event('a'))
    await delay(13_000)
    await answer.write(`${event('b')}data: [DONE]\n\n`)
    answer.end()
  })
  const response = fetch(`${at}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: bodyOf('Think about it.'),
  }).then(answer => answer.text())
  await waitUntil('the provider is asked', () => provider.requests.length > asked)

  const size = 4 * mebibyte
  provider.respondNext(streamBytes(size, event('x'.repeat(16_000))))
  const { socket, heard } = asker(
    '/v1/chat/completions',
    key,
    bodyOf('Write me a book, slowly.'),
    at,
  )
  for (let pause = 0; pause < 6; pause++) {
    await delay(2_400)
    socket.resume()
    await delay(5)
    socket.pause()
  }
  socket.resume()
  await waitUntil('all of it is read', () => heard.text.endsWith('\r\n0\r\n\r\n'))
  t.ok(heard.bytes > size, 'all of it')
  t.match(await response, /"b"[^]*\[DONE\]/)
  const { destroyed, readableEnded } = kept.socket
  t.equal(destroyed || readableEnded, false, 'a connection is kept for the next call')
})

t.test('the same for what is passed on without memory', async t => {
  const key = await newKey()
  provider.respondNext(streamBytes(100 * mebibyte, 'x'.repeat(64 * 1024)))
  const asked = provider.requests.length
  const body = JSON.stringify({ model: 'gpt-4o-mini-tts', input: 'a', voice: 'alloy' })
  asker('/v1/audio/speech', key, body)
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  t.equal(await provider.requests.at(-1)!.outcome, 'left')
})

t.test('a provider that goes silent is left, and the client sees the answer break', async t => {
  const key = await newKey()
  provider.respondNext(stallAfter([event('Half')]))
  const begun = performance.now()
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: bodyOf('Tell me all.'),
  })
  await t.rejects(response.text())
  const ms = performance.now() - begun
  t.ok(ms > 3_000, `after ${ms.toFixed(0)} ms`)
  t.equal(await provider.requests.at(-1)!.outcome, 'left')
  await waitUntil('both are stored', async () => (await readDocuments(backend, key)).length > 1)
  t.match(await wordsOf(key), [
    { role: 'user', begin: 'Tell me all.' },
    { role: 'assistant', begin: 'Half', interrupted: true },
  ])
})
