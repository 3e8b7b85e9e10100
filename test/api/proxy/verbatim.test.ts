import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

/** What a proxied call stores of what programs write, and what it says of it. */

const { backend, base, owner, provider, newKey } = await startProxyFixture(t)
await startJobWorkers(backend)

const reminder = '<system-reminder>\nUse tabs.\n</system-reminder>'
const order = '<order_details>\nitem: 5 red lamps\nship to: Oslo\n</order_details>'
const said = `${reminder}\n${order}\nPlease remember this order.`
const reply = '<think>\nLamps.\n</think>\nNoted.'

async function ask(
  key: string,
  { headers = {}, more = {} }: { headers?: Record<string, string>; more?: object } = {},
) {
  provider.respondAlways(respondJson(chatCompletion(reply)))
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key, ...headers },
    body: JSON.stringify({
      model: 'gpt-5-mini',
      messages: [{ role: 'user', content: said }],
      ...more,
    }),
  })
  const text = await response.text()
  await waitUntilIdle(backend)
  const stored = (await readDocuments(backend, key)).map(({ text }) => text).toSorted()
  const sent = provider.requests.at(-1)!
  return { status: response.status, headers: response.headers, stored, sent, text }
}

/** How many memories have each origin. */
async function originsOf(key: string): Promise<Record<string, number>> {
  const { body } = await createTestClient(base, key).get('/v1/memory/list')
  const rows = body.items as { origin: string }[]
  const groups = Map.groupBy(rows, ({ origin }) => origin)
  return Object.fromEntries(Array.from(groups, ([origin, { length }]) => [origin, length]))
}

t.test(
  'marks of known programs are left out and told; an element of no program is stored',
  async t => {
    const { headers, stored } = await ask(await newKey())
    t.same(stored, [`${order}\nPlease remember this order.`, 'Noted.'].toSorted())
    t.equal(headers.get('x-memory-left-out'), `system-reminder=1;characters=${reminder.length}`)
  },
)

t.test('header, body and policy store everything as it was sent', async t => {
  const all = [said, reply].toSorted()
  const header = await ask(await newKey(), { headers: { 'x-memory-verbatim': 'true' } })
  t.same(header.stored, all)
  t.equal(header.headers.get('x-memory-left-out'), null)
  t.notOk(header.sent.headers.some(([name]) => /^x-memory/i.test(name)))
  const body = await ask(await newKey(), { more: { memory_verbatim: true } })
  t.same(body.stored, all)
  t.notMatch(body.sent.body.toString(), 'memory_verbatim')
  const put = (body: object) => owner.send('PUT', '/v1/account/policy', { body })
  t.match(await put({ verbatim: true }), {
    status: 200,
    body: { verbatim: true, store_response: 'always' },
  })
  t.same((await ask(await newKey())).stored, all)
  await put({ verbatim: false })
  t.equal((await ask(await newKey(), { headers: { 'x-memory-verbatim': 'all' } })).status, 400)
})

t.test(
  "verbatim: marks alone are a program's, marks beside words stay with the person",
  async t => {
    const headers = { 'x-memory-verbatim': 'true', 'x-memory-metadata': '{"run_id":"r-7"}' }
    const key = await newKey()
    await ask(key, { headers, more: { messages: [{ role: 'user', content: reminder }] } })
    t.same(await originsOf(key), { program: 2 })
    const beside = await newKey()
    await ask(beside, { headers })
    t.same(await originsOf(beside), { person: 1, model: 1 })
  },
)

t.test('verbatim: a call of a program for itself, and text beside calls of tools', async t => {
  const key = await newKey()
  const headers = { 'x-memory-verbatim': 'true' }
  const title = 'Generate a title for this conversation:\n'
  const aside = await ask(key, { headers, more: { messages: [{ role: 'user', content: title }] } })
  t.equal(aside.headers.get('x-memory-status'), 'aside')
  t.same(aside.stored, [title, reply].toSorted())
  t.same(await originsOf(key), { program: 2 }, "no person's words")
  const loop = await newKey()
  const client = createTestClient(base, loop)
  const calls = {
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  provider.respondNext(respondJson(chatCompletion('Let me look.', calls)))
  const question = { role: 'user', content: 'Which lamps?' }
  await client.post('/v1/chat/completions', {
    model: 'gpt-5-mini',
    messages: [question],
    memory_verbatim: true,
  })
  provider.respondNext(respondJson(chatCompletion('Red ones.')))
  const messages = [
    question,
    { role: 'assistant', content: 'Let me look.', ...calls },
    { role: 'tool', tool_call_id: 'c', content: 'red' },
  ]
  await client.post('/v1/chat/completions', {
    model: 'gpt-5-mini',
    messages,
    memory_verbatim: true,
  })
  await waitUntilIdle(backend)
  t.same((await readDocuments(backend, loop)).map(({ text }) => text).toSorted(), [
    'Let me look.',
    'Red ones.',
    'Which lamps?',
  ])
})
