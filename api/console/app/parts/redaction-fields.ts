import { html, type View } from '#api/console/app/html.ts'
import { checkboxGroup, selectField } from '#api/console/app/parts/fields.ts'
import type { Redaction, RedactionKind } from '#api/contract/generated/types.ts'

const kinds: readonly (readonly [RedactionKind, string])[] = [
  ['secret', 'Keys, tokens and passwords'],
  ['card', 'Card numbers'],
  ['iban', 'Bank accounts'],
  ['national-id', 'National ids'],
  ['email', 'Email addresses'],
  ['phone', 'Phone numbers'],
  ['ip', 'Internet addresses'],
]

type Props = { value: Redaction; onValue: (redaction: Redaction) => void }

export const redactionFields = ({ value, onValue }: Props): View =>
  html`<div class="stack">
    ${selectField({
      label: 'Private data in what is stored',
      value: value.mode,
      onValue: mode => onValue({ ...value, mode }),
      choices: [
        ['off', 'Is kept as it is'],
        ['redact', 'Is replaced by its kind'],
        ['block', 'Is refused, and so is the text around it'],
      ],
      hint: 'From the next request on; what is stored already stays. A model call is never refused.',
    })}
    ${
      value.mode !== 'off' &&
      checkboxGroup({
        label: 'What is looked for',
        value: value.kinds,
        onValue: kinds => onValue({ ...value, kinds: [...kinds] }),
        choices: kinds,
      })
    }
  </div>`

/** A redaction as requests take it: `off` has no kinds. */
export const toRedactionBody = ({ mode, kinds }: Redaction) => ({
  mode,
  ...(mode !== 'off' && { kinds }),
})
