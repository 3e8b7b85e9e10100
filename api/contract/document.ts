import { readFileSync } from 'node:fs'
import type { Steps } from '#shared/core/event-loop.ts'
import { SchemaWalk } from '#shared/core/schema-walk.ts'
import { shape, type Schema, type Shape } from '#shared/core/shape.ts'

export type Credential = 'memory-key' | 'admin'

/** A right of a Memory Key, by its suffix and kind. `govern`: to act for the account; only keys made with it have it. */
export type KeyRight = 'read' | 'write' | 'mint' | 'govern'

/**
 * What an endpoint does, and so what becomes of fields, parameters and headers that it does not know. `changes` deletes,
 * copies, mints, shares, ends or sets something, and refuses them; `reads` and `stores` (texts) ignore and name them;
 * `forwards` passes them on to a provider.
 */
export type Effect = 'reads' | 'stores' | 'changes' | 'forwards'

/** A reference into `$defs`. */
export type Reference = { $ref: string }

/** A body or an answer. */
export type Content = {
  /** Media types, the usual one first. */
  media: string[]
  /** A stream of JSON lines, each of this schema. */
  lines: boolean
  schema: Reference
}

/** An endpoint as its tables describe it. */
export type Endpoint = {
  /** Unique name: `search`. */
  operation: string
  method: string
  /** As the router takes it: `/v1/orgs/:orgId`. */
  path: string
  summary: string
  description: string
  effect: Effect
  /** Any one of these opens the endpoint; none: it is open. */
  auth: Credential[]
  needs: KeyRight[]
  /** Without that right it does nothing, and answers its usual status. */
  quiet?: true
  /** Not part of the contract of the hosted service. */
  ours?: true
  params?: Reference
  query?: Reference
  /** Names in lower case, as Node reads them. */
  headers?: Reference
  /** When it is not required, a missing body is an empty object. */
  body?: Content & { bytesMax: number; required: boolean }
  /** By status. */
  answers: Record<string, Content>
  /** Headers of its answers, in lower case. */
  sends: string[]
  /** Every status it refuses with. */
  errors: number[]
}

/** The whole contract as data: every named schema, and every endpoint by its operation. */
export type ContractDocument = {
  $schema: string
  $id: string
  $comment: string
  $defs: Record<string, Schema>
  endpoints: Record<string, Endpoint>
}

/** The contract, generated from the tables of this folder. */
export const contractDocument = JSON.parse(
  readFileSync(new URL('generated/schemas.json', import.meta.url), 'utf8'),
) as ContractDocument

/** The parts of a request, and its answer. */
export type EndpointPart = 'params' | 'query' | 'headers' | 'body' | 'answer'

const partLabels: Record<EndpointPart, string> = {
  params: 'the path',
  query: 'the query',
  headers: 'the headers',
  body: 'the body',
  answer: 'the answer',
}

/**
 * The shape of a named schema. Paths, queries and headers can only carry text, so the numbers in them
 * are read from it.
 */
export function shapeOf<T>(definition: string, part: EndpointPart): Shape<T> {
  const key = `${part} ${definition}`
  const known = shapes.get(key) as Shape<T> | undefined
  if (known) return known
  const made = shape<T>(
    { $ref: `${contractDocument.$id}#/$defs/${definition}` },
    {
      document: schemas,
      name: partLabels[part],
      coerce: part !== 'body' && part !== 'answer',
      nullIsAbsent: part === 'body',
      unknown: part !== 'body' ? 'judged' : strictBodies.has(definition) ? 'refused' : 'ignored',
    },
  )
  shapes.set(key, made)
  return made
}

/** The bodies of endpoints that change something; what is sent line by line is stored as far as it is known. */
const strictBodies = new Set(
  Object.values(contractDocument.endpoints).flatMap(({ effect, body }) =>
    effect === 'changes' && body && !body.lines ? [body.schema.$ref.split('/').at(-1)!] : [],
  ),
)

/** By part and definition, so that each is compiled once. */
const shapes = new Map<string, Shape<unknown>>()

/**
 * Compiles the schemas of requests, one a step: 100 take 0.6 s of CPU. Without it the first request of each endpoint
 * compiles its own while all other requests wait.
 */
export function* compileRequestShapes(): Steps<number> {
  const checked: EndpointPart[] = ['query', 'body']
  let count = 0
  for (const [key, made] of shapes) {
    if (!checked.some(part => key.startsWith(`${part} `))) continue
    made.compile()
    count++
    yield
  }
  return count
}

/** Reads the schemas of the contract. */
export const contractSchemas = new SchemaWalk(contractDocument)

/** The fields of a body or the parameters of a query, by name, and whether it takes others too. */
export const fieldsOf = ({ $ref }: Reference): { names: string[]; isClosed: boolean } => ({
  names: Object.keys(contractSchemas.properties({ $ref })),
  isClosed: contractSchemas.isClosed({ $ref }),
})

const schemas = { $id: contractDocument.$id, $defs: contractDocument.$defs }
