import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import {
  callModel,
  proxyDialects,
  type ProxyDialect,
} from '#test/support/samples/proxy-dialects.ts'
import {
  lostBytes,
  sessionCalls,
  type SessionCall,
} from '#test/support/samples/tool-session-calls.ts'
import { families } from '#test/support/samples/tool-sessions.ts'
import { removeContextBlocks } from '#shared/domain/echoes.ts'

/** `X-Memory-Tell-Absence`: a question to memory that has no answer is told so, in all formats, where it is asked for. */

const { provider, backend, base, owner, newKey } = await startProxyFixture(t)

const block = '<memory_context>\nNothing is remembered of this.\n</memory_context>'
const asked = 'What is the name of my sister?'
const fact = 'The cellar key hangs behind the clock.'
const on = { 'x-memory-tell-absence': 'true' }

type Options = { headers?: Record<string, string>; more?: Record<string, unknown> }

/** What the provider got of a message, and whether it is what the client sent. */
async function ask(key: string, dialect: ProxyDialect, said: string, options: Options = {}) {
  const response = await callModel(base, `${key}:read`, dialect, said, options)
  await response.bytes()
  const sent = provider.requests.at(-1)!.body.toString()
  const told = sent.split(JSON.stringify(block).slice(1, -1)).length - 1
  const isUnchanged = sent === JSON.stringify(dialect.body(said))
  const { headers } = response
  const abstained = headers.get('x-memory-abstained')
  const tokens = headers.get('x-memory-tokens-injected')
  const status = headers.get('x-memory-status')
  return { code: response.status, sent, told, isUnchanged, status, abstained, tokens }
}

const silent = { told: 0, isUnchanged: true, tokens: '0' }

for (const dialect of proxyDialects) {
  t.test(`${dialect.format}: one line in place of silence, where it is asked for`, async t => {
    const key = await newKey()
    await insertMemories(backend, key, [{ text: fact }])
    const of = (said: string, options?: Options) => ask(key, dialect, said, options)
    t.match(await of(asked), { ...silent, status: 'none' }, 'off by default')
    t.match(await of(asked, { headers: on }), {
      told: 1,
      status: 'none',
      abstained: 'nothing_relevant',
      tokens: /^[1-9]/,
    })
    t.match(await of('Do you remember Heidi?', { more: { memory_tell_absence: true } }), {
      told: 1,
      sent: /^(?!.*tell_absence)/s,
    })
    for (const said of [
      'Thanks a lot, good night!',
      'Which pharaoh built the pyramid of Giza?',
      'Write a poem about autumn.',
      'How do I sort a list in Python?',
    ])
      t.match(await of(said, { headers: on }), silent, said)
    const known = await of('Where does my cellar key hang?', { headers: on })
    t.match(known, { told: 0, status: 'ok', sent: 'behind the clock' })
    const wrong = await of(asked, { headers: { 'x-memory-tell-absence': 'yes' } })
    t.equal(wrong.code, 400)
  })
}

t.test('the policy asks for it in every call, and a call may forbid it', async t => {
  const [dialect] = proxyDialects
  const key = await newKey()
  const put = (body: object) => owner.send('PUT', '/v1/account/policy', { body })
  t.match(await put({ tell_absence: true }), { status: 200, body: { tell_absence: true } })
  t.match(await ask(key, dialect!, asked), { told: 1 })
  const forbidden = { headers: { 'x-memory-tell-absence': 'false' } }
  t.match(await ask(key, dialect!, asked, forbidden), silent)
  const more = { memory_tell_absence: false }
  t.match(await ask(key, dialect!, asked, { headers: on, more }), silent, 'over a header, too')
  const api = createTestClient(base, key)
  const messages = [{ role: 'user', content: asked }]
  const prepare = async (body: object = {}) =>
    (await api.post('/v1/memory/prepare', { messages, ...body })).body
  const told = { context: block, memories_found: 0, memories: [], abstained: 'nothing_relevant' }
  t.match(await prepare(), told)
  t.match(await prepare({ memory_tell_absence: false }), { context: null })
  await put({ tell_absence: false })
  t.match(await prepare(), { context: null })
  const { memory_tokens: tokens } = await prepare({ memory_tell_absence: true })
  t.ok(tokens > 0)
})

for (const [name, family] of Object.entries(families)) {
  t.test(`${name}: the line stays through the steps and turns of an agent`, async t => {
    const key = await newKey()
    const call = sessionCalls({ provider, base }, `${key}:read`, family)
    const topics = ['bicycle', 'boat']
    let before: SessionCall | undefined
    for (const [turn, step] of [
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
    ] as const) {
      const now = await call(family.body(topics, turn, step, 2), on)
      t.equal(now.units.filter(({ isBlock }) => isBlock).length, turn + 1)
      t.equal(now.isSafe, true)
      if (before) t.equal(lostBytes(before, now), 0)
      before = now
    }
  })
}

t.test('a client that sends the line back has not said it', async t => {
  t.equal(removeContextBlocks(`${block}\n\n${asked}`), asked)
  t.equal(removeContextBlocks(block.replaceAll('<', '&lt;').replaceAll('>', '&gt;')), '')
})
