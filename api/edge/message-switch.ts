import { suggestName } from '#shared/core/describe-input.ts'
import type { InputNotes } from '#shared/core/lenient-input.ts'
import { unknownField } from '#shared/core/refusals.ts'

/**
 * Judges the fields by which a message could be meant to stay out of memory. Messages are open to the fields of
 * providers, so that no others are compared.
 *
 * @param notes gets `private` and `store`, which are not heard on a message
 * @throws Refusal `invalid` for nearly `memory`: what was to be kept out would be stored.
 */
export function requireNoMemoryNearMiss(messages: readonly object[], notes: InputNotes): void {
  for (const [index, message] of messages.entries()) {
    for (const name of Object.keys(message)) {
      if (name === 'private' || name === 'store') notes.noteIgnored(`messages[].${name}`)
      else if (name !== 'memory' && looksLike.test(name) && suggestName(name, ['memory']))
        throw unknownField(`messages[${index}].${name.slice(0, 64)}`, 'did you mean memory?')
    }
  }
}

/** Spares the comparison for all names but a few. */
const looksLike = /mem|mmo|emo/i
