import type { Context } from 'koa'
import { maskKeys } from '#shared/access/key.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'

/**
 * Tells in the headers of an answer what of its request was not taken as it was sent: `X-Memory-Ignored-Fields`
 * names unknown fields and parameters, `X-Memory-Clamped` what was brought to its bound.
 */
export function sendInputNotes(ctx: Context, { ignored, clamped }: InputNotes): void {
  if (ignored.size > 0) ctx.set('X-Memory-Ignored-Fields', [...ignored].map(toToken).join(', '))
  if (clamped.size === 0) return
  const bounds = [...clamped].map(([name, bound]) => `${name}=${bound}`)
  ctx.set('X-Memory-Clamped', bounds.join(', '))
}

/** A name as it may stand in a list in a header. */
const toToken = (name: string): string =>
  maskKeys(name).replaceAll(/[^\x21-\x7E]|[,%]/gu, character =>
    encodeURIComponent(character.toWellFormed()),
  )
