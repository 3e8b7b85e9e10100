import type { Context } from 'koa'
import { contractDocument, fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import { suggestName } from '#shared/core/describe-input.ts'

/** Longest part of a parameter's name that a message repeats. */
const shownLengthMax = 64

/** Unknown parameters of a request that are compared with all names: 0.05 ms for each. */
const comparedMax = 20

/**
 * Refuses query parameters that an endpoint does not know and that could be meant to change what it does: nearly a
 * parameter or field of its own or of another endpoint, one of paging, and any of a request that changes something. Others are
 * noted and not used.
 *
 * @throws Refusal `invalid` with the nearest name, or the place where the parameter belongs.
 */
export function checkParameters(
  ctx: Context,
  { effect, query, body }: Pick<Endpoint, 'effect' | 'query' | 'body'>,
  notes: InputNotes,
): void {
  const known = query ? fieldsOf(query) : { names: [], isClosed: true }
  if (!known.isClosed) return
  const inBody = body && !body.lines ? fieldsOf(body.schema).names : []
  for (const name of Object.keys(ctx.query)) {
    if (known.names.includes(name)) continue
    const hint = meantHint(name, known.names, inBody)
    const isCompared = notes.ignored.size < comparedMax
    if (hint === undefined && !isMeantElsewhere(name, isCompared) && effect !== 'changes') {
      notes.noteIgnored(name.slice(0, shownLengthMax))
      continue
    }
    const others =
      known.names.length > 0
        ? `known parameters: ${known.names.join(', ')}`
        : 'this endpoint takes no query parameters'
    const shown = name.slice(0, shownLengthMax)
    throw new Refusal('invalid', `unknown query parameter ${shown}`, hint ?? others)
  }
}

/** The parameter or field of the endpoint that a name was probably meant to be. */
function meantHint(name: string, known: string[], inBody: string[]): string | undefined {
  // As forms write a field of a field: `tag[$ne]`.
  const [base = ''] = name.split('[')
  if (inBody.includes(name)) return `send ${name} in the body`
  const nearest = suggestName(base, known)
  if (nearest) return `did you mean ${nearest}?`
  const nearestInBody = suggestName(base, inBody)
  return nearestInBody && `did you mean ${nearestInBody}, in the body?`
}

/** Whether a name is, nearly or shortened, one that could filter or page an answer of ours: who sends it counts on it. */
function isMeantElsewhere(name: string, compared: boolean): boolean {
  const names = (namesOfAll ??= new Set([...listNames(), ...pagingNames]))
  if (names.has(name)) return true
  if (!compared || name.length < 3) return false
  const alike = [...names].filter(one => one[0] === name[0])
  return suggestName(name, alike) !== undefined || alike.some(one => isShort(name, one))
}

/** `min_imp` of `min_importance`: each word begins as that of the longer name does. */
function isShort(name: string, long: string): boolean {
  const [words, longs] = [name.split('_'), long.split('_')]
  return (
    words.length > 1 &&
    words.length === longs.length &&
    words.every((word, index) => word !== '' && longs[index]!.startsWith(word))
  )
}

/** Names of paging at Stripe, GitHub, Google (AIP-158) and MongoDB that no parameter of ours has. */
const pagingNames =
  'offset skip page per_page next_cursor starting_after ending_before before filter where'.split(
    ' ',
  )

let namesOfAll: Set<string> | undefined

/** The parameters and the fields of the bodies of all endpoints of ours. */
const listNames = (): string[] =>
  Object.values(contractDocument.endpoints)
    .flatMap(({ query, body }) => [query, body?.schema])
    .flatMap(part => (part && fieldsOf(part).isClosed ? fieldsOf(part).names : []))
