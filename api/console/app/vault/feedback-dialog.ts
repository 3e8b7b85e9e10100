import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { dialogForm } from '#api/console/app/parts/dialogs.ts'
import { selectField, useFields } from '#api/console/app/parts/fields.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import { forgetAnswers } from '#api/console/app/vault/read-once.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { Feedback } from '#api/contract/generated/types.ts'

const names: Record<Feedback, string> = words.feedback

/** What its owner has said of a memory, where that keeps it from being told. */
export const feedbackChip = ({ feedback }: DisplayedMemory): View | false =>
  feedback !== undefined &&
  feedback !== 'right' &&
  chip('Told no more', 'bad', `${names[feedback]}: kept, and told to no model`)

type Props = {
  memory: DisplayedMemory
  onClose: () => void
  onChange: (id: string, changed: Pick<DisplayedMemory, 'feedback'>) => void
}

/** Says whether a memory is right; one that is not is told no more. */
export function FeedbackDialog({ memory, onClose, onChange }: Props): View {
  const user = useVaultUser()
  const { fields, of } = useFields({ feedback: memory.feedback ?? 'wrong' })
  return dialogForm({
    title: 'Is it right?',
    verb: 'Save',
    onClose,
    act: async () => {
      const { feedback } = fields
      const request = { params: { memoryId: memory.id }, body: { feedback } }
      const answer = await call('POST /v1/memory/:memoryId/feedback', request, undefined, user)
      forgetAnswers()
      for (const id of answer.ids) onChange(id, { feedback })
    },
    done: 'Your feedback is kept.',
    fields: html`<blockquote class="quote">${memory.text.slice(0, 300)}</blockquote>
      ${selectField({
        label: 'This memory',
        ...of('feedback'),
        choices: Object.entries(names) as [Feedback, string][],
        hint: 'What is wrong, outdated or not yours is told no more, from now on, with all memories of the same text. It stays in this list, and can be told again: it is right.',
      })}`,
  })
}
