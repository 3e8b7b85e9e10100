import {
  document,
  shapeOf,
  type Endpoint,
  type PartName,
  type Reference,
} from '#api/contract/document.ts'
import type { Endpoints, ErrorBody } from '#api/contract/types.ts'
import type { Shape } from '#shared/core/shape.ts'

export * from '#api/contract/shapes.ts'

/** `POST /v1/memory/search` and so on. */
export type Route = keyof Endpoints

/** An endpoint with what it takes and answers as shapes; a part it does not have is not there. */
type Bound<Parts> = {
  readonly [Name in Extract<keyof Parts, PartName>]: Shape<Parts[Name]>
} & {
  readonly answers: Parts extends { answers: infer Answers }
    ? { readonly [Status in keyof Answers]: Shape<Answers[Status]> }
    : never
  /** Everything else its tables say: who may ask, what it reads, which statuses it refuses with. */
  readonly endpoint: Endpoint
}

export type Contract = { readonly [Name in Route]: Bound<Endpoints[Name]> }

/** Every endpoint of the service, in the order of its pages. Shapes compile at their first check. */
export const contract = Object.fromEntries(
  Object.values(document.endpoints).map(endpoint => [
    `${endpoint.method} ${endpoint.path}`,
    bind(endpoint),
  ]),
) as Contract

/**
 * What an answer must look like, so that tests can hold every answer of the service against the
 * contract. Of JSON lines it is the shape of each line.
 *
 * @param path as the router takes it: `/v1/orgs/:orgId`
 * @throws Error when the contract has no such endpoint, or the endpoint no such status.
 */
export function answerOf(method: string, path: string, status: number): Shape<unknown> {
  const route = `${method} ${path}`
  const bound = (contract as Record<string, Bound<{ answers: Record<number, unknown> }>>)[route]
  if (!bound) throw new Error(`${route} is not in the contract`)
  const answer = bound.answers[status]
  if (answer) return answer
  if (bound.endpoint.errors.includes(status)) return errorBody
  throw new Error(`${route} does not answer ${status}`)
}

const errorBody = shapeOf<ErrorBody>('ErrorBody', 'answer')

function bind(endpoint: Endpoint): unknown {
  const { params, query, headers, body, answers } = endpoint
  const bound = ({ $ref }: Reference, part: PartName) => shapeOf($ref.split('/').at(-1)!, part)
  return {
    endpoint,
    ...(params && { params: bound(params, 'params') }),
    ...(query && { query: bound(query, 'query') }),
    ...(headers && { headers: bound(headers, 'headers') }),
    ...(body && { body: bound(body.schema, 'body') }),
    answers: Object.fromEntries(
      Object.entries(answers).map(([status, { schema }]) => [status, bound(schema, 'answer')]),
    ),
  }
}
