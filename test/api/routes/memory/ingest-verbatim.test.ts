import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { samplesWithoutWords, samplesWithWords } from '#test/support/samples/harness-samples.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

/** What ingest and upload store: every text as it was sent, but for what a client keeps out. */

const { backend, base, newClient } = await startService(t)

const user = (content: string, more: object = {}) => ({ role: 'user', content, ...more })
const assistant = (content: string, more: object = {}) => ({ role: 'assistant', content, ...more })

async function ingest(body: object, headers: Record<string, string> = {}) {
  const key = await buildKey(backend)
  const answer = await createTestClient(base, key).post('/v1/memory/ingest', body, headers)
  await waitUntilIdle(backend)
  const stored = (await readDocuments(backend, key)).map(({ text }) => text).toSorted()
  return { ...answer, stored, key }
}

const written = [
  '<order_details>\nitem: 5 red lamps\nship to: Oslo\n</order_details>\nPlease remember this order.',
  '<context>Ada lives in Oslo with a cat.</context>',
  '<?xml version="1.0"?>\n<invoice>\n  <line_item>lamp</line_item>\n</invoice>',
  'Context: Ada lives in Oslo.\nQuestion: where does she live?',
  'Generate a title for this conversation:\n',
  ...Object.values(samplesWithWords),
  ...Object.values(samplesWithoutWords),
  // An echo of our own profile is no text of a person's: `profile.test.ts` has it.
].filter(text => text.length < 1_000 && !text.includes('<memory_profile>'))

t.test('ingest and upload store every text as it was sent', async t => {
  const replies = written.map(text => `${text}\n<think>\nhm\n</think>`)
  const messages = written.flatMap((text, index) => [user(text), assistant(replies[index]!)])
  const { body, stored } = await ingest({ messages })
  t.match(body, { accepted: true, queued: true, left_out: {} })
  t.same(stored, [...written, ...replies].toSorted())
  const key = await buildKey(backend)
  const lines = written.map(content => JSON.stringify({ content })).join('\n')
  const response = await fetch(`${base}/v1/memory/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' },
    body: lines,
  })
  t.match(await response.json(), { status: 'complete', stats: { stored: written.length } })
  t.same((await readDocuments(backend, key)).map(({ text }) => text).toSorted(), written.toSorted())
})

t.test(
  'messages with parts in place of a content are read; what has nothing to read is counted',
  async t => {
    const messages = [
      { role: 'user', id: 'm1', parts: [{ type: 'text', text: 'My tuba is by Miraphone.' }] },
      {
        role: 'assistant',
        content: '',
        parts: [
          { type: 'step-start' },
          { type: 'reasoning', text: 'A brass instrument.' },
          { type: 'tool-search', state: 'output-available', output: {} },
          { type: 'text', text: 'A fine tuba.' },
          { type: 'source-document', sourceId: 's', title: 'x' },
        ],
      },
      { role: 'user', parts: [{ text: 'As Gemini has it.' }, { inlineData: {} }] },
      { role: 'assistant', content: null, refusal: 'I cannot say.' },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'Nor that.' }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm' }] },
      { role: 'user', text: 'under another name' },
      { role: 'user', content: [{ type: 'widget', body: 'x' }] },
      { role: 'user', content: '' },
    ]
    const { status, body, stored } = await ingest({ messages })
    t.equal(status, 202)
    const texts = [
      'A fine tuba.',
      'As Gemini has it.\n[file]',
      'I cannot say.',
      'My tuba is by Miraphone.',
    ]
    t.same(stored, [...texts, 'Nor that.'])
    t.same(body.left_out, { unreadable: 2 })
    const refused = await ingest({ messages: messages.slice(7, 9) })
    t.equal(refused.status, 400)
    t.match(refused.body, {
      error: /no user or assistant turn/,
      hint: /content: a text, or a list/,
    })
    const silent = await ingest({ messages: [{ role: 'system', content: 'x' }] })
    t.match(silent.body, { hint: /system and tools/ })
  },
)

t.test('memory: false excludes that message alone', async t => {
  const messages = [user('My PIN is 1234.', { memory: false }), assistant('Noted.')]
  const one = await ingest({ messages })
  t.match(one.body, { accepted: true, left_out: { private: 1 } })
  t.same(one.stored, ['Noted.'])
  const other = await ingest({ messages: [user('Hi'), assistant('Hello', { memory: false })] })
  t.same(other.stored, ['Hi'])
})

t.test('memory_store and memory_store_response, in body and header', async t => {
  const messages = [user('I live in Oslo.'), assistant('Lovely.')]
  for (const [body, headers, stored, leftOut] of [
    [{ memory_store: false }, {}, ['Lovely.'], { input: 1 }],
    [{}, { 'x-memory-store': 'false' }, ['Lovely.'], { input: 1 }],
    [{ memory_store_response: false }, {}, ['I live in Oslo.'], { response: 1 }],
    [{}, { 'x-memory-store-response': 'false' }, ['I live in Oslo.'], { response: 1 }],
    [{ memory_store: true }, { 'x-memory-store': 'false' }, ['Lovely.'], { input: 1 }],
  ] as [object, Record<string, string>, string[], object][]) {
    const answer = await ingest({ messages, ...body }, headers)
    t.equal(answer.status, 202)
    t.same(answer.stored, stored, JSON.stringify([body, headers]))
    t.same(answer.body.left_out, leftOut)
  }
  const none = await ingest({ messages, memory_store: false, memory_store_response: false })
  t.equal(none.status, 202)
  t.match(none.body, { accepted: false, queued: false, left_out: { input: 1, response: 1 } })
  t.same(none.stored, [])
  t.match(await ingest({ messages: [user('x', { memory: false })] }), {
    status: 202,
    body: { accepted: false, queued: false },
  })
  t.equal((await ingest({ messages }, { 'x-memory-store': 'no' })).status, 400)
})

t.test('the policy with_input binds an answer to its input', async t => {
  const { key, ...client } = await newClient()
  t.match((await client.get('/v1/account/policy')).body, {
    verbatim: false,
    store_response: 'always',
  })
  const put = await client.send('PUT', '/v1/account/policy', {
    body: { store_response: 'with_input' },
  })
  t.match(put, { status: 200, body: { store_response: 'with_input', verbatim: false } })
  const messages = [
    user('My PIN is 1234.', { memory: false }),
    assistant('Noted.'),
    user('I live in Oslo.'),
    assistant('Lovely.'),
  ]
  await client.post('/v1/memory/ingest', { messages })
  await client.post('/v1/memory/ingest', { messages, memory_store: false })
  await waitUntilIdle(backend)
  t.same((await readDocuments(backend, key)).map(({ text }) => text).toSorted(), [
    'I live in Oslo.',
    'Lovely.',
  ])
})
