import type { Context } from 'koa'
import { contractDocument, fieldsOf, type Endpoint } from '#api/contract/document.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import { suggestName } from '#shared/core/describe-input.ts'

/** Longest part of a parameter's name that a message repeats. */
const shownLengthMax = 64

/**
 * Refuses query parameters that an endpoint does not know and that could be meant to change what it does: nearly a
 * parameter or field of its own, a parameter of another endpoint, and any of a request that changes something. Others are
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
    if (hint === undefined && !isMeantElsewhere(name) && effect !== 'changes') {
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

/** Whether a name is that of a filter or switch of another endpoint of ours: who sends it counts on it. */
const isMeantElsewhere = (name: string): boolean => (parametersOfAll ??= listParameters()).has(name)

let parametersOfAll: Set<string> | undefined

const listParameters = (): Set<string> =>
  new Set(
    Object.values(contractDocument.endpoints).flatMap(({ query }) =>
      query && fieldsOf(query).isClosed ? fieldsOf(query).names : [],
    ),
  )
