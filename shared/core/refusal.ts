import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import table from '#shared/core/refusal-words.json' with { type: 'json' }

/**
 * Makes a refusal that has its message and hint in the table of words.
 *
 * @param values stand in place of their names in braces
 * @param cause for the log
 */
export function refusal(
  reason: RefusalReason,
  name: keyof typeof table,
  values: Readonly<Record<string, string | number>> = {},
  cause?: unknown,
): Refusal {
  const [message = '', hint] = table[name].map(text =>
    text.replaceAll(/\{(\w+)\}/g, (whole, key: string) => String(values[key] ?? whole)),
  )
  return new Refusal(reason, message, hint, cause)
}
