import type { Endpoints } from '../contract/generated/types.ts'
import type { EndpointLine, EndpointResponse, LinesRoute, Route } from './client.ts'

/** Headers under the name that their field has in a body or a query; the others lose `x-` and their hyphens. */
export const headerFields = {
  'x-session-id': 'session_id',
  'x-embedding-model': 'embeddings',
  'x-memory-context-limit': 'context_limit',
  'x-memory-density': 'density',
  'x-memory-as-of': 'as_of',
} as const

/** What a method is about, beside its fields. */
export type MethodOptions = {
  /** Ends the call. */
  signal?: AbortSignal
  /** For a call that is made again after a crash; without it each call has one of its own. */
  idempotencyKey?: string
}

/**
 * An endpoint as a method. Fields of path, body, query and headers stand in one object.
 *
 * @typeParam Optional fields that this client has a value for
 */
export type Method<Name extends Route, Optional extends string = never> =
  object extends Fields<Name, Optional>
    ? (fields?: Fields<Name, Optional>, options?: MethodOptions) => Answer<Name>
    : (fields: Fields<Name, Optional>, options?: MethodOptions) => Answer<Name>

/** An endpoint that takes JSON lines: as text, or as objects. */
export type UploadMethod<Name extends Route> = (
  fields: { lines: string | Iterable<Loose<Part<Name, 'body'>, Defaulted<Name>>> } & Omit<
    Fields<Name>,
    keyof Part<Name, 'body'>
  >,
  options?: MethodOptions,
) => Answer<Name>

/** An endpoint whose body is a file. */
export type FileMethod<Name extends Route> = (
  fields: { file: Uint8Array | Blob } & Omit<Fields<Name>, 'file'>,
  options?: MethodOptions,
) => Answer<Name>

type Answer<Name extends Route> = Name extends LinesRoute
  ? AsyncGenerator<EndpointLine<Name>>
  : Promise<EndpointResponse<Name>>

type Part<Name extends Route, Key extends string> =
  Endpoints[Name] extends Record<Key, infer Value> ? Value : unknown

type Fields<Name extends Route, Optional extends string = never> = Simplify<
  Part<Name, 'params'> &
    Loose<Part<Name, 'body'>, Defaulted<Name> | Optional> &
    Omit<Loose<Part<Name, 'query'>, Defaulted<Name>>, keyof Part<Name, 'body'>> &
    Omit<HeaderPart<Part<Name, 'headers'>>, keyof Part<Name, 'body'> | keyof Part<Name, 'query'>>
>

/** Shown as one object in editors. */
type Simplify<Value> = { [Key in keyof Value]: Value[Key] }

type Defaulted<Name extends Route> = Extract<Part<Name, 'defaults'>, PropertyKey>

/** Fields that have a default may be left out. A body that takes any field stays as it is. */
type Loose<Value, Optional extends PropertyKey> = string extends keyof Value
  ? Value
  : Omit<Value, Optional> & Partial<Pick<Value, Extract<keyof Value, Optional>>>

type HeaderPart<Headers> = {
  [Name in keyof Headers as Name extends OwnHeader ? never : HeaderField<Name>]: Headers[Name]
}

/** The client sends these itself. */
type OwnHeader = 'x-memory-key' | 'x-memory-user' | 'x-memory-user-from' | 'idempotency-key'

type HeaderField<Name> = Name extends keyof typeof headerFields
  ? (typeof headerFields)[Name]
  : Name extends `x-${infer Rest}`
    ? SnakeCase<Rest>
    : SnakeCase<Name>

type SnakeCase<Name> = Name extends `${infer Head}-${infer Rest}`
  ? `${Head}_${SnakeCase<Rest>}`
  : Name
