import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { contractDocument, type Content, type Endpoint } from '#api/contract/document.ts'
import { SchemaWalk, type JsonSchema } from '#shared/core/schema-walk.ts'
import { endpointOf } from '#test/support/checks/contract.ts'

/** One request and its answer. Header names are in lower case. */
type Exchange = {
  method: string
  target: string
  headers: readonly string[]
  body: string
  status: number
  sends: readonly string[]
  answer: string
}

/** The tests by promise of the contract that they have touched: `POST /v1/memory/search body.query`. */
export type Touched = Record<string, string[]>

/** Longer bodies are not read. */
const readCharsMax = 200_000

/** Stands for a value with every field. */
const anything = Symbol('anything')

const walk = new SchemaWalk(contractDocument)

/** Every promise of the contract: statuses, parts of requests, fields of successful answers, headers. */
export function* listPromises(): Generator<string> {
  for (const endpoint of Object.values(contractDocument.endpoints)) {
    const { method, path, answers, errors, sends } = endpoint
    const told = Object.entries(answers).flatMap(([status, { schema }]) => [
      status,
      ...listFields(schema, status, [anything]),
    ])
    const parts = [...told, ...errors, ...partsOf(endpoint), ...sends.map(name => `sends ${name}`)]
    for (const part of new Set(parts)) yield `${method} ${path} ${part}`
  }
}

function* partsOf({ query, headers, body }: Endpoint): Generator<string> {
  if (body) yield* listFields(body.schema, 'body', [anything])
  if (query) yield* listFields(query, 'query', [anything])
  if (headers) for (const name in walk.properties(headers)) yield `takes ${name}`
}

/** The fields of a schema at every level that one of the values has. */
function* listFields(schema: JsonSchema, at: string, values: unknown[]): Generator<string> {
  if (values.length === 0) return
  for (const { properties, items, isStrict } of walk.branches(schema)) {
    // What is checked as a whole is one promise: filters nest in themselves.
    if (isStrict) continue
    if (items) yield* listFields(items, `${at}[]`, values.flatMap(elementsOf))
    for (const [name, property] of Object.entries(properties)) {
      const fields = values
        .map(value => (value === anything ? anything : Object(value)[name]) as unknown)
        .filter(field => field !== undefined)
      if (fields.length > 0) yield `${at}.${name}`
      yield* listFields(property, `${at}.${name}`, fields)
    }
  }
}

const elementsOf = (value: unknown): unknown[] =>
  value === anything ? [anything] : Array.isArray(value) ? value : []

/** What an exchange touches. A refused request proves its status alone. */
function listTouched(exchange: Exchange): string[] {
  // A test may ask for what is no address at all.
  const url = URL.parse(exchange.target, 'http://localhost')
  const endpoint = url && endpointOf(exchange.method, url.pathname)
  if (!endpoint) return []
  const { method, path, answers, query, headers, body, sends } = endpoint
  const { status } = exchange
  const parts = [String(status)]
  const answer = answers[status]
  if (answer) {
    const fieldsIn = (text: string, { schema }: Content, at: string) =>
      listFields(schema, at, readValues(text))
    const taken = headers ? walk.properties(headers) : {}
    parts.push(
      ...fieldsIn(exchange.answer, answer, String(status)),
      ...(body ? fieldsIn(exchange.body, body, 'body') : []),
      ...(query ? [...url.searchParams.keys()].map(name => `query.${name}`) : []),
      ...exchange.headers.filter(name => name in taken).map(name => `takes ${name}`),
      ...exchange.sends.filter(name => sends.includes(name)).map(name => `sends ${name}`),
    )
  }
  return parts.map(part => `${method} ${path} ${part}`)
}

/** JSON, lines of JSON, or the names of the fields of a form; nothing of another text. */
function readValues(text: string): unknown[] {
  const names = [...text.matchAll(/form-data; name="(\w+)"/g)].map(([, name]) => [name, true])
  if (names.length > 0) return [Object.fromEntries(names)]
  try {
    return [JSON.parse(text)]
  } catch {
    return text.split('\n').flatMap(line => {
      try {
        return [JSON.parse(line) as unknown]
      } catch {
        return []
      }
    })
  }
}

/** File and names of the test that runs. */
let current = ''
const touched = new Map<string, Set<string>>()

/** Follows which test of a file runs. A test may begin before the end of the one before it is told. */
export function followTests(title: string, test: Test): void {
  current = title
  const titleOf = ({ name }: { name: string }) => `${title} > ${name}`
  test.on('subtestStart', subtest => followTests(titleOf(subtest), subtest as Test))
  test.on('subtestEnd', subtest => {
    if (current === titleOf(subtest)) current = title
  })
}

/** What was touched since the last call. */
export function takeTouched(): Touched {
  const taken = Object.fromEntries([...touched].map(([promise, tests]) => [promise, [...tests]]))
  touched.clear()
  return taken
}

/** Notes what an exchange touches for the test that runs. */
function recordExchange(exchange: Exchange): void {
  for (const promise of listTouched(exchange)) {
    touched.set(promise, (touched.get(promise) ?? new Set()).add(current))
  }
}

/** Ports of the servers that note what their exchanges touch. */
const recorded = new Set<number>()

/** Notes what an exchange with a service of another process touches. */
export function recordAnswer(base: string, exchange: Exchange): void {
  if (!recorded.has(Number(new URL(base).port))) recordExchange(exchange)
}

/** Notes what each exchange of a server touches, whoever the client is. */
export function recordServer(server: Server): void {
  server.once('listening', () => recorded.add((server.address() as AddressInfo).port))
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    const body = keepText(request, 'push')
    const answer = keepText(response, 'write', 'end')
    response.once('finish', () =>
      recordExchange({
        method: request.method!,
        target: request.url!,
        headers: Object.keys(request.headers),
        body: body(),
        status: response.statusCode,
        sends: response.getHeaderNames(),
        answer: answer(),
      }),
    )
  })
}

/** Keeps what the methods of a stream are called with. @returns its text; none if it is long. */
function keepText<Name extends string>(
  stream: Record<Name, (...args: never[]) => unknown>,
  ...names: Name[]
): () => string {
  const chunks: Buffer[] = []
  let length = 0
  for (const name of names) {
    const method = stream[name] as (...args: unknown[]) => unknown
    const keep = (...args: unknown[]): unknown => {
      const [chunk] = args
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) {
        length += chunk.length
        if (length <= readCharsMax) chunks.push(Buffer.from(chunk as string))
      }
      return method.apply(stream, args)
    }
    Object.assign(stream, { [name]: keep })
  }
  return () => (length <= readCharsMax ? Buffer.concat(chunks).toString() : '')
}
