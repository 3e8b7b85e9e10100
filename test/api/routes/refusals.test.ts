import t, { type Test } from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { mintId } from '#shared/core/ids.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import type { TestAnswer } from '#test/support/start/api.ts'
import { errorMessage } from '#test/support/checks/contract.ts'
import {
  isForwarded,
  startEveryEndpoint,
  type EndpointRequest,
} from '#test/support/checks/every-endpoint.ts'
import { propertiesOf, schemaFaults, smallestValue } from '#test/support/checks/schema-faults.ts'

/* What every endpoint refuses by its table in the contract. What only one refuses stands in the test of its route. */

const { backend, operator, stranger, own, theirs, open, account, stored, ...requests } =
  await startEveryEndpoint(t)
const { pathOf, queryOf, rightKey, validBody, ask } = requests
const endpoints = Object.values(contractDocument.endpoints)
/** What a path names that no account has, and what no test here makes. */
const nobodys: Record<string, string> = {
  ...Object.fromEntries(Object.keys(own).map(name => [name, mintId()])),
  key: `mk_${'0'.repeat(32)}`,
}

/** What is wrong with a refusal; null when it is as promised. */
function misses({ status, body }: TestAnswer, expected: number, says: string[]): string | null {
  const message = errorMessage(body)
  if (status !== expected) return `${status} in place of ${expected}: ${JSON.stringify(body)}`
  if (message === undefined) return `no message: ${JSON.stringify(body)}`
  const silent = says.filter(text => !message.includes(text))
  return silent.length > 0 ? `${message}, without ${silent.join(' and ')}` : null
}

let sent = 0

type Case = [what: string, expected: number, says: string[], request: EndpointRequest]

/** Sends the cases of each endpoint, all endpoints at once. */
async function refuses(t: Test, casesOf: (endpoint: Endpoint) => Case[]): Promise<void> {
  const before = await stored()
  await Promise.all(
    endpoints.map(async endpoint => {
      const faults: string[] = []
      for (const [what, expected, says, request] of casesOf(endpoint)) {
        sent++
        const fault = misses(await ask(endpoint, request), expected, says)
        if (fault) faults.push(`${what}: ${fault}`)
      }
      t.strictSame(faults, [], `${endpoint.method} ${endpoint.path}`)
    }),
  )
  t.strictSame(await stored(), before, 'nothing was stored')
}

t.test('400: each field of a body that is missing, misspelt, of another type or out of bounds', t =>
  refuses(t, endpoint => {
    const { body } = endpoint
    if (!body || body.lines || isForwarded(endpoint)) return []
    if (body.media[0] === 'application/octet-stream') return []
    return schemaFaults(body.schema).map(fault => [
      `${fault.kind} of ${fault.field || 'the body'}`,
      400,
      [fault.field || 'the body', ...fault.says],
      { body: JSON.stringify(fault.value) },
    ])
  }),
)

t.test(
  '400: each parameter of a query that is misspelt, twice, of another type or out of bounds',
  t =>
    refuses(t, endpoint => {
      const { query } = endpoint
      if (!query || isForwarded(endpoint)) return []
      const at = (parameters: string[][]) =>
        `${pathOf(endpoint)}?${new URLSearchParams(parameters).toString()}`
      const names = Object.keys(propertiesOf(query))
      const faults = schemaFaults(query, { isText: true }).map(
        ({ field, kind, says, value }): Case => {
          const path = at(Object.entries(value as Record<string, string>))
          return [`${kind} of ${field}`, 400, [field, ...says], { path }]
        },
      )
      const twice = names.map((name): Case => {
        const value = [name, String(smallestValue(propertiesOf(query)[name]!))]
        return [`${name} twice`, 400, [name], { path: at([value, value]) }]
      })
      const cursor: Case = ['no cursor', 400, ['cursor'], { path: at([['cursor', 'nonsense']]) }]
      // A request line may not be longer.
      return [...faults, ...twice, ...(names.includes('cursor') ? [cursor] : [])].filter(
        ([, , , { path }]) => path!.length < 8_000,
      )
    }),
)

t.test('400: an embedding model that nobody knows', t =>
  refuses(t, endpoint => {
    const { body, query } = endpoint
    if (isForwarded(endpoint)) return []
    const embeddings = 'nobody/model'
    const cases: Case[] = []
    if (body && !body.lines && propertiesOf(body.schema).embeddings) {
      const sent = { ...(validBody(endpoint) as object), embeddings }
      cases.push(['in the body', 400, ['embeddings'], { body: sent }])
    }
    if (query && propertiesOf(query).embeddings && endpoint.operation !== 'exportVault') {
      const path = pathOf(endpoint) + queryOf(endpoint, { embeddings })
      cases.push(['in the query', 400, ['embeddings'], { path }])
    }
    return cases
  }),
)

t.test('400, 415: a body that is no JSON, or a form', t =>
  refuses(t, endpoint => {
    const { body } = endpoint
    if (!body) return []
    const type = { 'content-type': 'multipart/form-data; boundary=x' }
    const cases: Case[] = body.media.some(media => media.startsWith('multipart'))
      ? []
      : [['a form', 415, [], { headers: type }]]
    if (body.media[0] === 'application/json') cases.push(['no JSON', 400, [], { body: '{"a":' }])
    return cases
  }),
)

t.test('401: without a key, with one that nobody made, and with one of the other kind', t =>
  refuses(t, endpoint => {
    const { auth } = endpoint
    if (auth.length === 0) return []
    const keys = ['', `mk_${'0'.repeat(32)}`, `mk_admin_${'0'.repeat(32)}`]
    if (!auth.includes('admin')) keys.push(operator.key)
    if (!auth.includes('memory-key')) keys.push(operator.memoryKey, own.keyId!)
    return keys.map(key => [key, 401, [], { key }])
  }),
)

t.test('403: a key that lacks a right', t =>
  refuses(t, endpoint => {
    const { path, quiet } = endpoint
    // A key whose right is switched off gets nothing there, in place of a refusal.
    const needs = quiet ? [] : endpoint.needs
    const suffixes: Record<string, string[]> = {
      read: [':write', ':off'],
      write: [':read', ':off'],
      mint: [':read', ':write', ':off'],
      govern: [':read', ':write', ':off'],
    }
    const keys = needs.flatMap(right => suffixes[right]!.map(suffix => rightKey(endpoint) + suffix))
    if (needs.includes('govern')) keys.push(own.key!, own.keyId!)
    if (path.startsWith('/v1/operator')) keys.push(stranger.key)
    return keys.map(key => [key, 403, [], { key }])
  }),
)

t.test('400: a key that has the right and no other is heard', t =>
  refuses(t, endpoint => {
    const { needs, body } = endpoint
    const [right] = needs
    if (needs.length !== 1 || !body || !['read', 'write'].includes(right!)) return []
    const key = `${rightKey(endpoint)}:${right}`
    return [[key, 400, [], { key, path: pathOf(endpoint), body: '{' }]]
  }),
)

t.test('400: headers that are longer than they may be', t =>
  refuses(t, endpoint => {
    const { headers } = endpoint
    if (!headers || isForwarded(endpoint)) return []
    return ['x-session-id', 'idempotency-key', 'x-memory-user']
      .filter(name => Object.hasOwn(propertiesOf(headers), name))
      .map(name => [name, 400, ['256'], { headers: { [name]: 'x'.repeat(257) } }])
  }),
)

t.test('404: what another account has, in the words for what nobody has, or cannot be', async t => {
  const before = await stored()
  for (const endpoint of endpoints) {
    if (!endpoint.params || isForwarded(endpoint)) continue
    const named = endpoint.path.match(/(?<=:)[a-z]\w+/gi)!
    for (const name of named.filter(name => !Object.hasOwn(open, name))) {
      const ids = [nobodys[name]!, 'nothing', ...(theirs[name] ? [theirs[name]] : [])]
      const answers = await Promise.all(
        ids.map(async id => {
          const { status, body } = await ask(endpoint, {
            path: pathOf(endpoint, { [name]: id }) + queryOf(endpoint),
          })
          sent++
          return { status, body: JSON.stringify(body).replaceAll(id, 'the id') }
        }),
      )
      const [missing] = answers
      const what = `${name} of ${endpoint.method} ${endpoint.path}`
      t.match(missing, { status: 404, body: /^{"error":"/ }, what)
      for (const answer of answers) t.strictSame(answer, missing, what)
    }
  }
  t.strictSame(await stored(), before, 'nothing was stored')
})

t.test('402: of an account whose balance is used up', async t => {
  await setBalance(backend, { account }, 0)
  const headers = { 'x-provider-key': 'sk-none' }
  await refuses(t, ({ errors, operation }) =>
    // A batch must be there first, and of a review only better words cost: the tests of their routes ask.
    errors.includes(402) && !['commit', 'reviewMemory'].includes(operation)
      ? [['no balance', 402, [], { headers }]]
      : [],
  )
})

t.test('every endpoint was asked', async t => {
  t.ok(sent > 2_000, `${sent} requests were refused`)
})
