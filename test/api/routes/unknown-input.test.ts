import t from 'tap'
import { contract, type Route } from '#api/contract/contract.ts'
import { contractDocument, type Endpoint, type Reference } from '#api/contract/document.ts'
import { checkParameters } from '#api/edge/query-parameters.ts'
import { checkHeaders } from '#api/edge/request-headers.ts'
import { InputNotes } from '#shared/core/lenient-input.ts'
import type { Shape } from '#shared/core/shape.ts'
import { errorMessage, refusalOf } from '#test/support/checks/contract.ts'
import { startEveryEndpoint, type EndpointRequest } from '#test/support/checks/every-endpoint.ts'
import { propertiesOf } from '#test/support/checks/schema-faults.ts'

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

/** These open what they name, and are judged with the credential. */
const ofCredentials = ['x-memory-key', 'x-memory-user', 'x-memory-user-from', 'x-provider-key']
const ownHeaders = Object.keys(propertiesOf({ $ref: '#/$defs/RequestHeaders' })).filter(name =>
  name.startsWith('x-'),
)
const nearly = (name: string): string[] => [
  name.slice(2),
  name.replace(/(?<=^x-.*)-/, ''),
  name.replace(/(?<=^x-..)(.)(.)/, '$2$1'),
  name.replace(/.$/, ''),
  `${name}s`,
]
const inventedHeaders = ['x-memory-colour', 'x-memory-dry-run', 'x-memory-limit', 'x-memory-1']
const headerNames = [
  ...new Set([...ownHeaders, ...ownHeaders.flatMap(nearly), ...inventedHeaders]),
].toSorted()
const unknownHeaders = ({ headers }: Endpoint): string[] =>
  headerNames.filter(
    name =>
      !ofCredentials.includes(name) && !(headers !== undefined && namesOf(headers).includes(name)),
  )

const service = await startEveryEndpoint(t)

const isFile = ({ body }: Endpoint): boolean =>
  body?.media.includes('application/octet-stream') ?? false

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
    for (const name of unknownHeaders(endpoint)) {
      judged++
      try {
        checkHeaders({ req: { headers: { [name]: 'x' } } } as never, endpoint, new InputNotes())
        let_through.push(`${name} in a header`)
      } catch (error) {
        const { message } = error as Error
        if (message !== `unknown header ${name}`) let_through.push(message)
      }
    }
    t.strictSame(let_through, [], `${method} ${path}`)
  }
  t.ok(judged > 15_000, `${judged} names`)
  t.end()
})

t.test('400: requests, and nothing is changed', async t => {
  const before = await service.stored()
  const tried = new Set<string>()
  await Promise.all(
    changing.map(async endpoint => {
      const { method, path, body, query } = endpoint
      const cases: [name: string, request: EndpointRequest][] = []
      // Lines and files have no fields of their own.
      const inBody = body?.lines || isFile(endpoint) ? [] : unknownIn(body?.schema)
      for (const name of next(inBody, meant.slice(0, 3)))
        cases.push([name, { body: bodyWith(endpoint, name) }])
      for (const name of next(unknownIn(query), meant.slice(0, 3)))
        cases.push([name, { path: `${service.pathOf(endpoint)}?${name}=x` }])
      for (const name of next(unknownHeaders(endpoint)))
        cases.push([name, { headers: { [name]: 'x' } }])
      const faults: string[] = []
      for (const [name, request] of cases) {
        const answer = await service.ask(endpoint, request)
        const message = errorMessage(answer.body) ?? ''
        if (answer.status !== 400 || !message.includes(name))
          faults.push(`${JSON.stringify(request)}: ${answer.status} ${JSON.stringify(answer.body)}`)
      }
      t.strictSame(faults, [], `${method} ${path}`)
    }),
  )
  t.strictSame(await service.stored(), before, 'nothing was changed')
  t.strictSame(
    [...names, ...headerNames].filter(name => !tried.has(name)),
    ofCredentials.toSorted(),
    'each name was tried',
  )

  /** Names that a client may mean, and four that were tried nowhere, as long as there are some. */
  function next(unknown: readonly string[], wanted: readonly string[] = []): string[] {
    const untried = unknown.filter(name => !tried.has(name))
    const some = (untried.length > 0 ? untried : unknown).slice(0, 4)
    const picked = new Set([...wanted.filter(name => unknown.includes(name)), ...some])
    for (const name of picked) tried.add(name)
    return [...picked]
  }
})
