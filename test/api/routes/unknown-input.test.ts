import t from 'tap'
import { contract, type Route } from '#api/contract/contract.ts'
import { contractDocument, type Endpoint, type Reference } from '#api/contract/document.ts'
import { checkParameters } from '#api/edge/query-parameters.ts'
import { InputNotes } from '#shared/core/lenient-input.ts'
import type { Shape } from '#shared/core/shape.ts'
import { errorMessage, refusalOf } from '#test/support/contract.ts'
import { startEveryEndpoint, type EndpointRequest } from '#test/support/every-endpoint.ts'
import { propertiesOf } from '#test/support/schema-faults.ts'

/*
 * Calls that change something refuse what they do not know, and do nothing. Every name is tried on every call by the
 * functions that judge it; requests then try some names on each call, and each name somewhere.
 */

const endpoints = Object.values(contractDocument.endpoints)
const changing = endpoints.filter(({ effect }) => effect === 'changes')
const namesOf = (part: Reference | undefined): string[] =>
  part ? Object.keys(propertiesOf(part)) : []

/** What a careless client means to send: a preview, a bound, an end. */
const meant = ['dry_run', 'preview', 'limit', 'expires_at', 'colour', 'x1', 'zzzz_unheard_of']
const names = [
  ...new Set([
    ...meant,
    ...endpoints.flatMap(({ body, query }) => [...namesOf(body?.schema), ...namesOf(query)]),
  ]),
].toSorted()
const unknownIn = (part: Reference | undefined): string[] =>
  names.filter(name => !namesOf(part).includes(name))

const service = await startEveryEndpoint(t)

/** A valid body with one field more. */
const bodyWith = (endpoint: Endpoint, name: string): object => ({
  ...(endpoint.body?.lines ? {} : (service.validBody(endpoint) as object | undefined)),
  [name]: 'x',
})

t.test('every call says what it does', t => {
  for (const { method, path, effect } of endpoints) {
    const expected = method === 'GET' ? ['reads'] : ['reads', 'stores', 'changes', 'forwards']
    t.ok(expected.includes(effect), `${method} ${path}: ${effect}`)
    if (!['GET', 'POST'].includes(method)) t.equal(effect, 'changes', `${method} ${path}`)
  }
  t.ok(changing.length > 50)
  t.end()
})

t.test('every name on every call', t => {
  let judged = 0
  for (const endpoint of changing) {
    const { method, path, body, query } = endpoint
    const { body: shape } = contract[`${method} ${path}` as Route] as { body?: Shape<unknown> }
    const let_through: string[] = []
    for (const name of shape && !body!.lines ? unknownIn(body!.schema) : []) {
      judged++
      const message = refusalOf(shape!, bodyWith(endpoint, name))?.message
      if (message !== `unknown field ${name}`) let_through.push(`${name} in the body: ${message}`)
    }
    for (const name of unknownIn(query)) {
      judged++
      try {
        checkParameters({ query: { [name]: 'x' } } as never, endpoint, new InputNotes())
        let_through.push(`${name} in the query`)
      } catch (error) {
        const { message } = error as Error
        if (message !== `unknown query parameter ${name}`) let_through.push(message)
      }
    }
    t.strictSame(let_through, [], `${method} ${path}`)
  }
  t.ok(judged > 10_000, `${judged} names`)
  t.end()
})

t.test('400: requests, and nothing is changed', async t => {
  const before = await service.stored()
  const tried = new Set<string>()
  let turn = 0
  await Promise.all(
    changing.map(async endpoint => {
      const { method, path, body, query } = endpoint
      const cases: [name: string, request: EndpointRequest][] = []
      const inBody = body?.lines ? [] : unknownIn(body?.schema)
      for (const name of pick(inBody)) cases.push([name, { body: bodyWith(endpoint, name) }])
      for (const name of pick(unknownIn(query)))
        cases.push([name, { path: `${service.pathOf(endpoint)}?${name}=x` }])
      const faults: string[] = []
      for (const [name, request] of cases) {
        tried.add(name)
        const answer = await service.ask(endpoint, request)
        const message = errorMessage(answer.body) ?? ''
        if (answer.status !== 400 || !message.includes(name))
          faults.push(`${JSON.stringify(request)}: ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      t.strictSame(faults, [], `${method} ${path}`)
    }),
  )
  t.strictSame(await service.stored(), before, 'nothing was changed')
  t.strictSame([...tried].toSorted(), names, 'each name was tried')

  /** Three names that a client may mean, and the next four of all. */
  function pick(unknown: readonly string[]): string[] {
    const all = Array.from({ length: 4 }, (_, n) => unknown[(turn + n) % unknown.length]!)
    turn += 4
    return unknown.length === 0
      ? []
      : [...new Set([...meant.slice(0, 3), ...all])].filter(name => unknown.includes(name))
  }
})
