import t from 'tap'
import { startJobWorkers } from '#test/support/api.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/chat-stream.ts'
import { respondJson, disconnectAfter, stallAfter } from '#test/support/model-provider/answers.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { insertMemories, readDocuments } from '#test/support/insert-memories.ts'
import { asks, completionsPath as path, startCompletions } from '#test/support/completions.ts'
import { countRows } from '#test/support/observe.ts'

const { provider, backend, base, anonymous, user, last } = await startCompletions(t)

// The first exchange of a process loads the tokenizer, for longer than these tests allow.
const warmUp = await user()
await fetch(base + path, {
  method: 'POST',
  headers: { ...warmUp.headers, 'content-type': 'application/json' },
  body: JSON.stringify(asks('Hello.')),
})

t.test(
  'a client that hangs up: the provider is left within a second, what arrived is stored',
  async t => {
    const { key, headers, stored } = await user()
    provider.respondNext(stallAfter(chatCompletionEvents(['Once upon ', 'a time'], { end: false })))
    const hangUp = new AbortController()
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(asks('Tell me a story.', { stream: true })),
      signal: hangUp.signal,
    })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text.includes('a time')) break
    }
    const leftAt = performance.now()
    hangUp.abort()
    t.equal(await last().outcome, 'left')
    // It would be ten minutes if nothing told the provider.
    t.ok(last().disconnectedAt! - leftAt < 300_000, `${last().disconnectedAt! - leftAt} ms`)
    t.same(await stored(), [
      ['user', 'Tell me a story.'],
      ['assistant', 'Once upon a time'],
    ])
    const documents = await readDocuments(backend, key)
    t.same(
      documents.map(({ interrupted }) => interrupted),
      [undefined, true],
    )
  },
)

t.test('a client that hangs up before the answer begins', async t => {
  const { headers, stored } = await user()
  const asked = provider.requests.length
  provider.respondNext(() => {})
  const hangUp = new AbortController()
  const response = fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(asks('Are you there?')),
    signal: hangUp.signal,
  })
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  // That is done while the provider is asked.
  await waitUntil(
    'what the user says is written',
    async () => (await countRows(backend, 'open_exchanges')) === 1,
  )
  hangUp.abort()
  await t.rejects(response)
  t.equal(await last().outcome, 'left')
  t.same(await stored(), [['user', 'Are you there?']])
})

t.test(
  'an answer that breaks off at the provider breaks off here, and is stored as far as it came',
  async t => {
    const { key, headers, stored } = await user()
    const heard = Promise.withResolvers<void>()
    provider.respondNext(async (seen, answer) => {
      await stallAfter(chatCompletionEvents(['Half an '], { end: false }))(seen, answer)
      await heard.promise
      answer.cut()
    })
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(asks('Go on', { stream: true })),
    })
    let text = ''
    await t.rejects(async () => {
      for await (const chunk of response.body!) {
        text += Buffer.from(chunk).toString()
        // What it has said so far has come all the way: it breaks off behind that.
        if (text.includes('Half an ')) heard.resolve()
      }
    })
    t.same(await stored(), [
      ['user', 'Go on'],
      ['assistant', 'Half an '],
    ])
    t.ok((await readDocuments(backend, key))[1]!.interrupted)
  },
)

t.test('400: a refusal of a call with a block that breaks off breaks off here', async t => {
  const { key, headers, stored } = await user()
  await insertMemories(backend, key, [
    { text: 'The bicycle of my sister is number 7 in the blue book.' },
  ])
  const json = { 'content-type': 'application/json' }
  provider.respondNext(disconnectAfter(['{"error":{'], { status: 400, headers: json }))
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, ...json },
    body: JSON.stringify(asks('Which number has the bicycle of my sister?')),
  })
  t.match(last().body.toString(), '<memory_context>')
  t.equal(response.status, 400)
  await t.rejects(response.text())
  // The next test counts what is open.
  await stored()
})

t.test('200: nothing that is cleared while the model answers comes back', async t => {
  const { key, headers, post, stored } = await user()
  let release = (): void => {}
  const held = new Promise<void>(resolve => (release = resolve))
  provider.respondNext(async (seen, answer) => {
    await held
    await respondJson(chatCompletion('Secret kept.'))(seen, answer)
  })
  const asked = provider.requests.length
  const answering = post(asks('My secret is 42.'))
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  await waitUntil('opened', async () => (await countRows(backend, 'open_exchanges')) === 1)
  await startJobWorkers(backend, 'clear')
  const cleared = await anonymous.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'] },
  })
  t.equal(cleared.status, 200)
  t.equal(await countRows(backend, 'open_exchanges'), 0, 'the words are gone')
  release()
  t.equal((await answering).status, 200)
  t.same(await stored(), [])
  provider.respondNext(respondJson(chatCompletion('Hello.')))
  await post(asks('A new start.'))
  t.equal((await stored()).length, 2)
  t.equal((await readDocuments(backend, key)).length, 2)
})
