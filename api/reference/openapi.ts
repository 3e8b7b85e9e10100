import texts from '#api/reference/openapi-texts.json' with { type: 'json' }
import { errorBodyOf } from '#api/contract/contract.ts'
import {
  contractDocument,
  type Content,
  type Credential,
  type Endpoint,
} from '#api/contract/document.ts'
import { answers, examples } from '#api/reference/examples.ts'
import {
  collectSchemas,
  isMarkedOurs,
  listAnswerHeaders,
  listFields,
  resolveReferences,
  rewriteReferences,
  type SchemaField,
} from '#api/reference/openapi-schemas.ts'

/**
 * Groups of endpoints, in reading order; one way to authorize for each credential (the other headers that carry it stand
 * in its description); and what a refusal of our own endpoints says, as it is sent.
 */
const { tags } = texts
const securitySchemes: Record<Credential, Record<string, unknown>> = texts.securitySchemes
const refusalExamples: Record<string, { error: string; hint?: string }> = texts.refusalExamples

/** What a newcomer calls first, in this order: the group "Start here", and the first of their own groups. */
const { firstOperations } = texts

/** Orders endpoints for a reader; those that are not named keep the order of the tables. */
const byReadingOrder = (one: { operation: string }, other: { operation: string }): number =>
  placeOf(one.operation) - placeOf(other.operation)

const placeOf = (operation: string): number =>
  firstOperations.indexOf(operation) + 1 || firstOperations.length + 1

/** The first pattern that a path matches names its tag. */
const tagByPath = texts.tagByPath.map(([pattern, tag]) => [new RegExp(pattern!), tag!] as const)

/** The groups of an endpoint: "Start here" for the first calls, and that of its path. */
const tagsOf = ({ operation, path }: { operation: string; path: string }): string[] => [
  ...(firstOperations.includes(operation) ? ['Start here'] : []),
  tagByPath.find(([pattern]) => pattern.test(path))?.[1] ?? 'Service',
]

/** Any one of them opens the endpoint; an empty list: it is open. */
const securityRequirements = (auth: readonly Credential[]): Record<string, string[]>[] =>
  auth.map(credential => ({ [credential]: [] }))

const statusTexts: Record<string, string> = texts.statusTexts

/** The meaning of a status, in one sentence. */
const statusText = (status: number): string => statusTexts[status] ?? String(status)

type Json = Record<string, unknown>

/** An OpenAPI 3.1 document. */
export type OpenApi = {
  openapi: '3.1.1'
  info: Json
  servers: Json[]
  tags: Json[]
  paths: Record<string, Record<string, Json>>
  components: { schemas: Json; responses: Json; headers: Json; securitySchemes: Json }
}

/**
 * The contract as OpenAPI 3.1: every endpoint that is served, with its parameters, bodies, answers,
 * errors and credentials, out of the tables that requests are checked against.
 *
 * @param served decides by method and path (as the router takes it) what is described
 */
export function buildOpenApi(
  version: string,
  served: (method: string, path: string) => boolean = () => true,
): OpenApi {
  const endpoints = Object.values(contractDocument.endpoints)
    .filter(({ method, path }) => served(method, path))
    .toSorted(byReadingOrder)
  const paths: OpenApi['paths'] = {}
  for (const endpoint of endpoints) {
    ;(paths[toOpenApiPath(endpoint.path)] ??= {})[endpoint.method.toLowerCase()] =
      buildOpenApiOperation(endpoint)
  }
  const used = new Set(endpoints.flatMap(tagsOf))
  return {
    openapi: '3.1.1',
    info: {
      title: 'Memory Vault',
      version,
      summary: 'A private, lasting memory for every user of an AI product.',
      description:
        'Point an OpenAI, Anthropic or Gemini SDK at this service and your product remembers; or call ' +
        'the memory endpoints around model calls of your own.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // The service that serves the document.
    servers: [{ url: '/' }],
    tags: tags.filter(({ name }) => used.has(name)),
    paths,
    components: {
      schemas: collectSchemas(endpoints),
      responses: buildErrorResponses(endpoints),
      headers: buildHeaderComponents(endpoints),
      securitySchemes,
    },
  }
}

const describeEndpoint = ({ description, needs, effect }: Endpoint): string =>
  [
    description,
    ...(needs.includes('govern')
      ? [
          'Of Memory Keys, only one that was made with the account may ask, and what it was rotated into.',
        ]
      : []),
    ...(effect === 'changes'
      ? [
          'A field, parameter or header of ours that it does not know is a 400, and nothing is done.',
        ]
      : []),
  ].join(' ')

function buildOpenApiOperation(endpoint: Endpoint): Json {
  const { operation, summary, path, auth } = endpoint
  return {
    operationId: operation,
    'x-contract': !endpoint.ours,
    'x-effect': endpoint.effect,
    tags: tagsOf(endpoint),
    summary: summary.replace(/\.$/, ''),
    description: describeEndpoint(endpoint),
    security: securityRequirements(auth),
    ...(buildParameters(endpoint).length > 0 && { parameters: buildParameters(endpoint) }),
    ...(endpoint.body && { requestBody: buildRequestBody(endpoint, endpoint.body) }),
    responses: {
      ...Object.fromEntries(
        Object.entries(endpoint.answers).map(([status, content]) => [
          status,
          buildResponse(endpoint, status, content),
        ]),
      ),
      ...Object.fromEntries(
        endpoint.errors.map(status => [
          String(status),
          { $ref: `#/components/responses/${refusalName(path, status)}` },
        ]),
      ),
    },
  }
}

const buildParameters = (endpoint: Endpoint): Json[] => [
  ...listFields(endpoint.params).map(field => buildParameter('path', field, endpoint)),
  ...listFields(endpoint.query).map(field => buildParameter('query', field, endpoint)),
  ...listFields(endpoint.headers).map(field => buildParameter('header', field, endpoint)),
]

function buildParameter(
  location: 'path' | 'query' | 'header',
  field: SchemaField,
  { operation, ours }: Pick<Endpoint, 'operation' | 'ours'>,
): Json {
  const resolved = resolveReferences(field.schema)
  const { description, 'x-contract': _, ...schema } = rewriteReferences(resolved) as Json
  const example = examples[operation]?.[location === 'header' ? 'headers' : location]?.[field.name]
  return {
    name: field.name,
    in: location,
    required: location === 'path' || field.required,
    'x-contract': !ours && !isMarkedOurs(resolved),
    ...(description !== undefined && { description }),
    schema,
    ...(example !== undefined && { example }),
  }
}

function buildRequestBody(
  { operation }: Endpoint,
  { media, required, ...content }: Endpoint['body'] & {},
) {
  const example = examples[operation]?.body
  const isFile = media[0] === 'application/octet-stream'
  const bytes = { type: 'string', contentMediaType: 'application/octet-stream' }
  return {
    required,
    content: Object.fromEntries(
      media.map(type => [
        type,
        {
          schema: isFile ? bytes : buildContentSchema(content, type),
          ...(example !== undefined && { example }),
        },
      ]),
    ),
  }
}

const buildResponse = (endpoint: Endpoint, status: string, content: Content): Json => ({
  description: statusText(Number(status)),
  ...(endpoint.sends.length > 0 && {
    headers: Object.fromEntries(
      endpoint.sends.map(name => [name, { $ref: `#/components/headers/${name}` }]),
    ),
  }),
  content: Object.fromEntries(
    content.media.map(type => [
      type,
      { schema: buildContentSchema(content, type), ...exampleOf(endpoint, status, type) },
    ]),
  ),
})

/** The recorded answer to the example of an endpoint. */
function exampleOf({ operation }: Endpoint, status: string, type: string): { example?: unknown } {
  const answer = answers[operation]
  if (answer?.status !== Number(status) || type !== answer.type) return {}
  const { body } = answer
  const toLine = (line: unknown): string => `${JSON.stringify(line)}\n`
  return {
    example: Array.isArray(body) && type.includes('ndjson') ? body.map(toLine).join('') : body,
  }
}

/** OpenAPI 3.1 describes a stream as a string; `x-line-schema` holds the schema of its lines. */
function buildContentSchema(
  { schema, lines }: Pick<Content, 'schema' | 'lines'>,
  type: string,
): Json {
  const linked = rewriteReferences(schema) as Json
  if (type === 'text/event-stream') {
    return { type: 'string', description: 'server-sent events, as the provider sends them' }
  }
  if (!lines) return linked
  return { type: 'string', description: 'one JSON object a line', 'x-line-schema': linked }
}

/** `Refused400`, and on OpenAI's paths `Refused400OpenAi`. */
const refusalName = (path: string, status: number): string =>
  `Refused${status}${errorBodyOf(path).replace('ErrorBody', '')}`

const byName = (one: { name: string }, other: { name: string }): number =>
  one.name < other.name ? -1 : 1

function buildErrorResponses(endpoints: readonly Endpoint[]): Json {
  const refusals = endpoints.flatMap(({ path, errors }) =>
    errors.map(status => ({ name: refusalName(path, status), status, body: errorBodyOf(path) })),
  )
  return Object.fromEntries(
    refusals.toSorted(byName).map(({ name, status, body }) => [
      name,
      {
        description: statusText(status),
        ...([429, 503].includes(status) && {
          headers: { 'retry-after': { $ref: '#/components/headers/retry-after' } },
        }),
        content: {
          'application/json': {
            schema: { $ref: `#/components/schemas/${body}` },
            ...(body === 'ErrorBody' &&
              refusalExamples[status] && { example: refusalExamples[status] }),
          },
        },
      },
    ]),
  )
}

function buildHeaderComponents(endpoints: readonly Endpoint[]): Json {
  const responseHeaders = new Set(['retry-after', ...endpoints.flatMap(({ sends }) => sends)])
  const fields = listAnswerHeaders().filter(({ name }) => responseHeaders.has(name.toLowerCase()))
  return Object.fromEntries(
    fields.map(({ name, schema }) => {
      const resolved = resolveReferences(schema)
      const { description, 'x-contract': _, ...rest } = rewriteReferences(resolved) as Json
      return [
        name.toLowerCase(),
        {
          ...(description !== undefined && { description }),
          'x-contract': !isMarkedOurs(resolved),
          schema: rest,
        },
      ]
    }),
  )
}

/** `/v1/orgs/:orgId` as `/v1/orgs/{orgId}`. */
export const toOpenApiPath = (path: string): string =>
  path.replaceAll(/\/:([A-Za-z]+)/g, (_, name: string) => `/{${name}}`)
