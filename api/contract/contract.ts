import {
  contractDocument,
  shapeOf,
  type Endpoint,
  type EndpointPart,
  type Reference,
} from '#api/contract/document.ts'
import type { Endpoints } from '#api/contract/generated/types.ts'
import { errorFamilyOf } from '#api/contract/provider-error.ts'
import type { Shape } from '#shared/core/shape.ts'

export * from '#api/contract/generated/shapes.ts'

/** `POST /v1/memory/search` and so on. */
export type Route = keyof Endpoints

/** The shapes of an endpoint's parts and answers. */
type EndpointShapes<Parts> = {
  readonly [Name in Extract<keyof Parts, EndpointPart>]: Shape<Parts[Name]>
} & {
  readonly answers: Parts extends { answers: infer Answers }
    ? { readonly [Status in keyof Answers]: Shape<Answers[Status]> }
    : never
  /** The rest of its tables: credentials, media types, error statuses. */
  readonly endpoint: Endpoint
}

/** Every endpoint of the service, in the order of its pages. Shapes compile at their first check. */
export const contract = Object.fromEntries(
  Object.values(contractDocument.endpoints).map(endpoint => [
    `${endpoint.method} ${endpoint.path}`,
    bindShapes(endpoint),
  ]),
) as { readonly [Name in Route]: EndpointShapes<Endpoints[Name]> }

/**
 * The shape of an answer, for tests that check answers against the contract; of JSON lines, the shape of
 * each line.
 *
 * @param path as the router takes it: `/v1/orgs/:orgId`
 * @throws Error when the contract has no such endpoint, or the endpoint no such status.
 */
export function responseShape(method: string, path: string, status: number): Shape<unknown> {
  const route = `${method} ${path}`
  const shapes = (contract as Record<string, EndpointShapes<{ answers: Record<number, unknown> }>>)[
    route
  ]
  if (!shapes) throw new Error(`${route} is not in the contract`)
  const answer = shapes.answers[status]
  if (answer) return answer
  if (shapes.endpoint.errors.includes(status)) return errorShapes[errorBodyOf(path)]
  throw new Error(`${route} does not answer ${status}`)
}

type ErrorBodyName = (typeof errorBodies)[keyof typeof errorBodies] | 'ErrorBody'

const errorBodies = {
  openai: 'OpenAiErrorBody',
  anthropic: 'AnthropicErrorBody',
  google: 'GoogleErrorBody',
  scim: 'ScimErrorBody',
} as const

/** The resource that describes the errors of a path. */
export function errorBodyOf(path: string): ErrorBodyName {
  const family = errorFamilyOf(path, '')
  return family ? errorBodies[family] : 'ErrorBody'
}

const errorShapes: Record<ErrorBodyName, Shape<unknown>> = {
  ErrorBody: shapeOf('ErrorBody', 'answer'),
  OpenAiErrorBody: shapeOf('OpenAiErrorBody', 'answer'),
  AnthropicErrorBody: shapeOf('AnthropicErrorBody', 'answer'),
  GoogleErrorBody: shapeOf('GoogleErrorBody', 'answer'),
  ScimErrorBody: shapeOf('ScimErrorBody', 'answer'),
}

function bindShapes(endpoint: Endpoint): unknown {
  const { params, query, headers, body, answers } = endpoint
  const shapeOfPart = ({ $ref }: Reference, part: EndpointPart) =>
    shapeOf($ref.split('/').at(-1)!, part)
  return {
    endpoint,
    ...(params && { params: shapeOfPart(params, 'params') }),
    ...(query && { query: shapeOfPart(query, 'query') }),
    ...(headers && { headers: shapeOfPart(headers, 'headers') }),
    ...(body && { body: shapeOfPart(body.schema, 'body') }),
    answers: Object.fromEntries(
      Object.entries(answers).map(([status, { schema }]) => [
        status,
        shapeOfPart(schema, 'answer'),
      ]),
    ),
  }
}
