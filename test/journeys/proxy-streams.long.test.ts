import t from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { goldenAnswers } from '#test/support/golden/index.ts'
import { startJobWorkers } from '#test/support/api.ts'
import { waitUntilSettled } from '#test/support/exchange-journal.ts'
import { respondWith, splitBytes } from '#test/support/model-provider/answers.ts'
import { modelNames } from '#test/support/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { readDocuments } from '#test/support/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)

const said = 'What does my cat like?'

const bodyOf = (family: ApiFormat, stream: boolean): string => {
  const messages = [{ role: 'user', content: said }]
  if (family === 'openai') return JSON.stringify({ model: modelNames.openai, stream, messages })
  if (family === 'responses') {
    return JSON.stringify({ model: modelNames.openai, stream, input: said })
  }
  if (family === 'google') {
    return JSON.stringify({ contents: [{ role: 'user', parts: [{ text: said }] }] })
  }
  return JSON.stringify({ model: modelNames.anthropic, max_tokens: 9, stream, messages })
}

const pathOf = (family: ApiFormat, name: string): string => {
  if (family === 'openai') return '/v1/chat/completions'
  if (family === 'anthropic') return '/v1/messages'
  if (family === 'responses') return '/v1/responses'
  const model = `/v1beta/models/${modelNames.google}`
  if (name.endsWith('.sse')) return `${model}:streamGenerateContent?alt=sse`
  return `${model}:${/array/.test(name) ? 'streamGenerateContent' : 'generateContent'}`
}

const post = (key: string, family: ApiFormat, name: string) =>
  fetch(base + pathOf(family, name), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: bodyOf(family, name.endsWith('.sse')),
  })

for (const family of ['openai', 'anthropic', 'google', 'responses'] as const) {
  t.test(`${family}: every golden answer passes unchanged, and what it says is stored`, async t => {
    const mine = goldenAnswers.filter(golden => golden.family === family)
    // Whole, and in pieces that fall inside events, lines and letters.
    const sizes = [Infinity, 29]
    const asked: { key: string; name: string; expected: string[] }[] = []
    for (const { name, contentType, bytes, reply } of mine) {
      for (const size of sizes) {
        const key = await world.newKey()
        const pieces = splitBytes(bytes, Math.min(size, bytes.length))
        provider.respondNext(respondWith(pieces, { headers: { 'content-type': contentType } }))
        const response = await post(key, family, name)
        const heard = Buffer.from(await response.arrayBuffer())
        t.ok(heard.equals(bytes), `${name} in pieces of ${size}`)
        t.equal(response.headers.get('content-type'), contentType)
        // What is said beside a call of a tool is a step on the way to an answer.
        const isAnswer = !reply.failed && !reply.isStep && reply.text.trim() !== ''
        const expected = isAnswer ? [reply.text, said] : [said]
        asked.push({ key, name, expected })
      }
    }
    await waitUntilSettled(backend)
    for (const { key, name, expected } of asked) {
      const texts = (await readDocuments(backend, key)).map(({ text }) => text)
      t.same(texts.toSorted(), expected.toSorted(), name)
    }
  })

  t.test(`${family}: each piece arrives when it is sent, not when the answer is whole`, async t => {
    const { bytes, name } = goldenAnswers.find(golden => golden.name === `${family}/text.sse`)!
    const pieces = splitBytes(bytes, Math.ceil(bytes.length / 5))
    let allow = (): void => {}
    provider.respondNext(async (_seen, answer) => {
      answer.head(200, { 'content-type': 'text/event-stream' })
      for (const piece of pieces) {
        await new Promise<void>(resolve => (allow = resolve))
        await answer.write(piece)
      }
      answer.end()
    })
    const response = await post(await world.newKey(), family, name)
    t.equal(response.status, 200, 'the head is there before the first piece')
    const reader = response.body!.getReader()
    for (const piece of pieces) {
      allow()
      let heard = Buffer.alloc(0)
      while (heard.length < piece.length) {
        heard = Buffer.concat([heard, (await reader.read()).value ?? Buffer.alloc(1)])
      }
      t.ok(heard.equals(piece))
    }
    t.same(await reader.read(), { done: true, value: undefined })
  })
}
