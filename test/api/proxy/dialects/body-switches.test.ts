import t from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'

const families: ApiFormat[] = ['openai', 'anthropic', 'google', 'responses']

t.test('every switch is read and taken out; null is as good as none', async t => {
  const switches = {
    memory: false,
    memory_mode: 'read',
    memory_store: true,
    memory_store_response: false,
    store_response: false,
    memory_ttl: 60,
    session_id: 'a/b c',
    embeddings: 'local',
  }
  for (const family of families) {
    const request = dialects[family].parseRequest(
      Buffer.from(JSON.stringify({ ...switches, other: 1 })),
    )
    t.strictSame(request.switches, switches)
    t.equal(request.serialize({}).toString(), '{"other":1}')
    const nulls = Object.fromEntries(
      Object.keys(switches).map(name => [name, name === 'embeddings' ? 'local' : null]),
    )
    const none = dialects[family].parseRequest(Buffer.from(JSON.stringify(nulls)))
    t.strictSame(none.switches, { embeddings: 'local' })
    t.equal(none.serialize({}).toString(), '{}')
  }
})

t.test('store and ttl are switches where the provider has no such field', async t => {
  const body = Buffer.from('{"store":false,"a":1,"ttl":60}')
  for (const [family, switches, rest] of [
    ['anthropic', { store: false, ttl: 60 }, '{"a":1}'],
    ['google', { ttl: 60 }, '{"store":false,"a":1}'],
    ['openai', {}, String(body)],
    ['responses', {}, String(body)],
  ] as const) {
    const request = dialects[family].parseRequest(body)
    t.strictSame(request.switches, switches, family)
    t.equal(request.serialize({}).toString(), rest, family)
  }
  for (const text of ['{"ttl":0}', '{"ttl":"5m"}', '{"store":"false"}'])
    t.throws(
      () => dialects.anthropic.parseRequest(Buffer.from(text)),
      { name: 'Refusal', reason: 'invalid' },
      text,
    )
})

t.test('a switch of a wrong type is refused by name', async t => {
  const wrong: [body: object, message: RegExp][] = [
    [{ memory: 'off' }, /memory must be/],
    [{ memory: { type: 'x' } }, /memory must be/],
    [{ memory: [] }, /memory must be/],
    [{ memory_mode: 'write-only' }, /memory_mode must be/],
    [{ memory_mode: true }, /memory_mode must be/],
    [{ memory_store: 'true' }, /memory_store must be/],
    [{ memory_store_response: 1 }, /memory_store_response must be/],
    [{ store_response: 'no' }, /store_response must be/],
    [{ memory_ttl: 1.5 }, /memory_ttl must be/],
    [{ session_id: 7 }, /session_id must be/],
    [{ session_id: '' }, /session_id must/],
    [{ session_id: 'x'.repeat(257) }, /session_id must/],
    [{ session_id: 'a\u0000b\n' }, /session_id must/],
  ]
  for (const family of families) {
    for (const [body, message] of wrong) {
      const read = (): unknown => dialects[family].parseRequest(Buffer.from(JSON.stringify(body)))
      t.throws(
        read,
        { name: 'Refusal', reason: 'invalid', message },
        JSON.stringify(body).slice(0, 60),
      )
    }
  }
})

t.test('of a switch given twice the last one counts, and both are taken out', async t => {
  const body = Buffer.from('{"memory":true,"a":1,"memory":false,"\\u006demory_mode":"off"}')
  const request = dialects.openai.parseRequest(body)
  t.strictSame(request.switches, { memory: false, memory_mode: 'off' })
  t.equal(request.serialize({}).toString(), '{"a":1}')
})

t.test('embeddings that are no text are the provider’s', async t => {
  const body = '{"embeddings":{"a":1},"memories":1}'
  const request = dialects.openai.parseRequest(Buffer.from(body))
  t.strictSame(request.switches, {})
  t.equal(request.serialize({}).toString(), body)
})

t.test('the memory of a message is taken out of it, and must be a boolean', async t => {
  const list = (memory: string): string =>
    `[{"role":"user"${memory}},{"a":{"memory":1}},{"memory":null}]`
  for (const [family, name] of [
    ['openai', 'messages'],
    ['anthropic', 'messages'],
    ['google', 'contents'],
  ] as const) {
    const body = `{"${name}":${list(',"memory":false')}}`
    t.equal(
      dialects[family].parseRequest(Buffer.from(body)).serialize({}).toString(),
      `{"${name}":[{"role":"user"},{"a":{"memory":1}},{}]}`,
    )
    const read = (): unknown =>
      dialects[family].parseRequest(Buffer.from(`{"${name}":${list(',"memory":"false"')}}`))
    t.throws(read, {
      name: 'Refusal',
      reason: 'invalid',
      message: `${name}/0/memory must be boolean`,
    })
  }
})

t.test('a body that is no object, or no JSON, is refused', async t => {
  for (const family of families) {
    for (const text of ['[]', '"a"', 'null', '7', '', '{', '{"a":1}}', "{'a':1}"]) {
      const read = (): unknown => dialects[family].parseRequest(Buffer.from(text))
      t.throws(read, { name: 'Refusal', reason: 'invalid' }, text)
    }
  }
})
