import { html, type View } from '#api/console/app/html.ts'
import { checkboxGroup, selectField } from '#api/console/app/parts/fields.ts'
import words from '#api/console/app/parts/words.json' with { type: 'json' }
import type { Redaction, RedactionKind } from '#api/contract/generated/types.ts'

const kinds = words.redactions as [RedactionKind, string][]

type Props = { value: Redaction; onValue: (redaction: Redaction) => void }

export const redactionFields = ({ value, onValue }: Props): View =>
  html`<div class="stack">
    ${selectField({
      label: 'Private data in what is stored',
      value: value.mode,
      onValue: mode => onValue({ ...value, mode }),
      choices: {
        off: 'Is kept as it is',
        redact: 'Is replaced by its kind',
        block: 'Is refused, and so is the text around it',
      },
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
