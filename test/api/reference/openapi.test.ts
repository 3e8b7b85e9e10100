import t from 'tap'
import { contract } from '#api/contract/contract.ts'
import { contractDocument } from '#api/contract/document.ts'
import { examples } from '#api/reference/examples.ts'
import { buildOpenApi, toOpenApiPath, type OpenApi } from '#api/reference/openapi.ts'
import { lintOpenApi } from '#scripts/lint-reference.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
const api = await startTestApi(t, backend, await buildKey(backend))
const answer = await fetch(`${api.base}/openapi.json`)
const served = (await answer.json()) as OpenApi

t.test('200: an OpenAPI 3.1 document of everything that is served', async t => {
  t.equal(answer.status, 200)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  const information = (await api.get('/')).body as { docs: string; endpoints: object }
  t.equal(information.docs, '/docs')
  const described = Object.entries(served.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`),
  )
  const routes = Object.keys(information.endpoints).map(route => {
    const [method, path] = route.split(' ') as [string, string]
    return `${method} ${toOpenApiPath(path.replaceAll(String.raw`\:`, ':'))}`
  })
  t.same(described.toSorted(), routes.toSorted())
})

t.test('304: whoever has it already', async t => {
  const headers = { 'if-none-match': answer.headers.get('etag')! }
  t.equal((await fetch(`${api.base}/openapi.json`, { headers })).status, 304)
})

t.test('a reader finds the first calls first, and one way to authorize', async t => {
  t.same(Object.keys(served.paths).slice(0, 5), [
    '/v1/memory/ingest',
    '/v1/memory/search',
    '/v1/memory/prepare',
    '/v1/chat/completions',
    '/v1/keys',
  ])
  t.same(served.tags.map(({ name }) => name).slice(0, 2), ['Start here', 'Memory'])
  const schemes = Object.values(served.components.securitySchemes as Record<string, object>)
  t.match(schemes, [{ scheme: 'bearer' }, { scheme: 'bearer' }])
  t.equal(schemes.length, 2, 'one for each kind of credential')
  const models = Object.entries(buildOpenApi('1.0.0').paths).filter(([, operations]) =>
    Object.values(operations).some(({ tags }) => (tags as string[]).includes('Models')),
  )
  const proxied = /^\/v1(?:beta)?\/(?:chat|messages|responses|models|audio|images|embeddings|embed)/
  for (const [path] of models) t.match(path, proxied, 'of model providers')
})

t.test('a linter finds nothing, in the whole contract too', async t => {
  for (const [name, source] of Object.entries({ served, whole: buildOpenApi('1.0.0') })) {
    t.same(await lintOpenApi(source), [], name)
  }
})

t.test('examples are requests that the tables take', async t => {
  const endpoints = new Map(Object.values(contract).map(bound => [bound.endpoint.operation, bound]))
  for (const [operation, example] of Object.entries(examples)) {
    const bound = endpoints.get(operation)
    t.ok(bound, operation)
    if (!bound || example?.body === undefined || !('body' in bound)) continue
    // A file is bytes, which no schema judges.
    if (bound.endpoint.body?.media.includes('application/octet-stream')) continue
    const body: unknown = bound.endpoint.body?.lines
      ? JSON.parse(example.body as string)
      : structuredClone(example.body)
    t.doesNotThrow(() => bound.body.check(body), operation)
  }
})

t.test('every endpoint that needs something says it by example', async t => {
  const silent = Object.values(contractDocument.endpoints).filter(
    ({ operation, params, body }) =>
      (params !== undefined || (body?.required && body.media[0]?.includes('json'))) &&
      examples[operation] === undefined,
  )
  t.same(
    silent.map(({ operation }) => operation),
    [],
  )
})
