import t from 'tap'
import { providerRoutes, routePattern } from '#api/proxy/provider-routes.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  respondError,
  respondJson,
  respondWith,
} from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { parseTables, readPage, readSection } from '#test/support/checks/readme.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)
const last = () => provider.requests.at(-1)!
const own = { 'x-memory-key': key, 'x-provider-key': 'sk-own' }
const json = { 'content-type': 'application/json' }

const makers = { openai: 'openai', responses: 'openai', anthropic: 'anthropic', google: 'google' }

const form = (...parts: string[]): string =>
  parts
    .map(part => `--x\r\nContent-Disposition: form-data; name="${part}"\r\n\r\nm-1\r\n`)
    .join('') + '--x--\r\n'

for (const route of providerRoutes.filter(({ shape }) => !shape)) {
  for (const method of route.methods) {
    t.test(`${method} ${route.path} passes byte for byte, both ways`, async t => {
      const family = route.family === 'shared' ? 'openai' : route.family
      const maker = makers[family]
      const path = route.path.replace(/:(?=id|item)/g, 'a-').replace(':model', `${maker}/m-1`)
      const bodies: Record<string, [body: string | Uint8Array<ArrayBuffer>, type: string]> = {
        json: [`{ "model":"m-1", "x" : 1.0, "contents":[ ],"messages":[]}`, json['content-type']],
        form: [form('file', 'x'), 'multipart/form-data; boundary=x'],
        either: [form('image', 'x'), 'multipart/form-data; boundary=x'],
        bytes: [new Uint8Array(70_000).map((_, index) => index % 251), 'application/x-any'],
      }
      const [body, type] = route.body ? bodies[route.body]! : [undefined, undefined]
      const named = typeof body === 'string' ? body.replace('"m-1"', `"${maker}/m-1"`) : body
      const sent = path.includes('m-1') ? body : named
      const answer = Buffer.from('{ "a" : "\\u00e9" }\n')
      provider.respondNext(
        respondWith([answer], { headers: { 'content-type': 'text/x', 'x-request-id': 'r' } }),
      )
      const response = await fetch(`${base}${path}?after=b&memory=off`, {
        method,
        headers: { ...own, ...(type && { 'content-type': type }) },
        ...(sent !== undefined && { body: sent }),
      })
      t.equal(response.status, 200)
      t.ok(Buffer.from(await response.arrayBuffer()).equals(answer))
      t.equal(response.headers.get('x-request-id'), 'r')
      const { url, body: got, headers } = last()
      t.equal(last().method, method)
      const whole = path.replace(`${maker}/m-1`, 'm-1')
      t.equal(url, `/${maker}${whole}?after=b`)
      t.ok(got.equals(Buffer.from((body ?? '') as string)), 'the body is the client’s')
      const credential = { google: 'x-goog-api-key', anthropic: 'x-api-key' }[family as 'google']
      t.match(findHeader(headers, credential ?? 'authorization'), /^(?:Bearer )?sk-own$/)
      t.equal(response.headers.get('x-memory-counted'), route.counts ? 'false' : null)
    })
  }
}

t.test('no Memory Key goes along in a path, and no path leads elsewhere', async t => {
  const before = provider.requests.length
  for (const path of [
    `/v1/files/${key}`,
    '/v1/files/..',
    '/v1/files/../memory/nothing',
    '/v1/files/%2e%2e',
    '/v1/responses/a%2Fb',
    '/v1beta/models/..:countTokens',
  ]) {
    const method = path.endsWith('countTokens') ? 'POST' : 'GET'
    const { status } = await fetch(new URL(base).origin + path, { method, headers: own })
    t.equal(status, 404, path)
  }
  t.equal(provider.requests.length, before)
})

t.test('a form without a file is the provider’s to judge, and nobody waits', async t => {
  for (const names of [['model'], ['language', 'model']]) {
    const fields = new FormData()
    for (const name of names) fields.append(name, name === 'model' ? 'whisper-1' : 'en')
    provider.respondNext(respondError('openai', 400))
    const asked = provider.requests.length
    const response = await fetch(`${base}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: own,
      body: fields,
    })
    t.equal(response.status, 400)
    t.equal(await response.text(), last().response.body.toString())
    t.equal(provider.requests.length, asked + 1)
    t.match(last().body.toString(), 'whisper-1')
  }
})

t.test('the provider of a request without a model', async t => {
  const asked = async (headers: Record<string, string>): Promise<string> => {
    provider.respondNext(respondJson({}))
    const response = await fetch(`${base}/v1/files/f-1`, {
      headers: { 'x-memory-key': key, ...headers },
    })
    return response.status === 200 ? last().url : `${response.status} ${await response.text()}`
  }
  t.equal(await asked({ 'x-provider-key': 'sk-1' }), '/openai/v1/files/f-1')
  t.equal(await asked({ authorization: 'Bearer gsk_1' }), '/groq/v1/files/f-1')
  t.equal(await asked({ 'x-provider-key': 'sk-or-1' }), '/openrouter/v1/files/f-1')
  const named = { 'x-provider-key': 'sk-1', 'x-provider': 'Mistral' }
  t.equal(await asked(named), '/mistral/v1/files/f-1')
  t.equal(await asked({ 'x-api-key': 'sk-ant-1' }), '/anthropic/v1/files/f-1')
  t.match(await asked({ ...named, 'x-provider': 'acme' }), /^400.*X-Provider: acme.*openai/)
  provider.respondAlways()
})

t.test('403: what is kept for the whole account is shown to its owner alone', async t => {
  const ownerKey = await buildKey(backend)
  const owner = createTestClient(base, ownerKey)
  const stored = { body: { key: 'sk-stored' } }
  await owner.send('PUT', '/v1/account/provider-keys/openai', stored)
  const { key: user } = (await owner.post('/v1/keys')).body as { key: string }
  const list = async (headers: Record<string, string>): Promise<number> => {
    provider.respondNext(respondJson({ data: [] }))
    return (await fetch(`${base}/v1/files`, { headers })).status
  }
  t.equal(await list({ 'x-memory-key': user }), 403)
  // The address is one that the operator set, where a key of the request shows nothing.
  const ownKey = { 'x-memory-key': user, authorization: 'Bearer sk-own' }
  t.equal(await list(ownKey), 403)
  const openai = backend.config.providers.get('openai')!
  t.teardown(() => Object.assign(openai, { isAddressSet: true }))
  Object.assign(openai, { isAddressSet: false })
  t.equal(await list(ownKey), 200)
  t.equal(await list({ 'x-memory-key': user }), 403)
  Object.assign(openai, { selfHosted: true })
  t.equal(await list(ownKey), 403)
  Object.assign(openai, { selfHosted: false })
  t.equal(await list({ 'x-memory-key': ownerKey }), 200)
  provider.respondAlways()
})

t.test('counting is without the block and without our switches', async t => {
  const counted = async (path: string, body: unknown): Promise<unknown> => {
    provider.respondNext(respondJson({ input_tokens: 3 }))
    const headers = { ...own, ...json }
    const response = await fetch(base + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    t.equal(response.status, 200)
    return JSON.parse(last().body.toString())
  }
  const switches = { memory_mode: 'on', session_id: 's' }
  const message = { role: 'user', content: 'Hi' }
  const messages = [{ ...message, memory: false }]
  t.same(await counted('/v1/messages/count_tokens', { model: 'claude-x', messages, ...switches }), {
    model: 'claude-x',
    messages: [message],
  })
  t.same(
    await counted('/v1/responses/input_tokens', {
      model: 'openai/gpt-5',
      input: messages,
      ...switches,
    }),
    { model: 'gpt-5', input: [message] },
  )
  const contents = { parts: { text: 'Hi' } }
  t.same(
    await counted('/v1beta/models/gemini-x:countTokens', {
      contents: { ...contents, memory: true },
    }),
    { contents },
  )
})

t.test('the page lists what is forwarded, and no more', async t => {
  const [table] = parseTables(readSection(readPage('api/README.md'), 'Forwarded to providers'))
  const written = table!.rows.map(cells => `${cells[0]!.replaceAll('`', '')} ${cells[1]}`)
  const rows = providerRoutes.filter(({ shape }) => !shape)
  t.same(
    written,
    rows.map(({ methods, path, family }) => `${methods.join(', ')} ${path} ${family}`),
  )
  t.ok(rows.every(row => !routePattern(row).test('/v1/memory/list')))
})
