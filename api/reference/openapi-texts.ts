import type { Credential } from '#api/contract/document.ts'
import texts from '#api/reference/openapi-texts.json' with { type: 'json' }

/**
 * Groups of endpoints, in reading order; one way to authorize for each credential (the other headers that carry it stand
 * in its description); and what a refusal of our own endpoints says, as it is sent.
 */
export const { tags } = texts
export const securitySchemes: Record<Credential, Record<string, unknown>> = texts.securitySchemes
export const refusalExamples: Record<string, { error: string; hint?: string }> =
  texts.refusalExamples

/** What a newcomer calls first, in this order: the group "Start here", and the first of their own groups. */
const { firstOperations } = texts

/** Orders endpoints for a reader; those that are not named keep the order of the tables. */
export const byReadingOrder = (one: { operation: string }, other: { operation: string }): number =>
  placeOf(one.operation) - placeOf(other.operation)

const placeOf = (operation: string): number =>
  firstOperations.indexOf(operation) + 1 || firstOperations.length + 1

/** The first pattern that a path matches names its tag. */
const tagByPath = texts.tagByPath.map(([pattern, tag]) => [new RegExp(pattern!), tag!] as const)

/** The groups of an endpoint: "Start here" for the first calls, and that of its path. */
export const tagsOf = ({ operation, path }: { operation: string; path: string }): string[] => [
  ...(firstOperations.includes(operation) ? ['Start here'] : []),
  tagByPath.find(([pattern]) => pattern.test(path))?.[1] ?? 'Service',
]

/** Any one of them opens the endpoint; an empty list: it is open. */
export const securityRequirements = (auth: readonly Credential[]): Record<string, string[]>[] =>
  auth.map(credential => ({ [credential]: [] }))

const statusTexts: Record<string, string> = texts.statusTexts

/** The meaning of a status, in one sentence. */
export const statusText = (status: number): string => statusTexts[status] ?? String(status)
