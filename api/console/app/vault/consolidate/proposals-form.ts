import { call } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { onSubmit, selectField, textAreaField } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/query-view.ts'
import { useAction } from '#api/console/app/use-query.ts'
import type {
  HeldBatch,
  Proposal,
  ProposalsUpdate,
} from '#api/console/app/vault/consolidate/held-batch.ts'
import type { CommitAnswer } from '#api/contract/generated/types.ts'

const importances = Array.from({ length: 10 }, (_, i) => [`${i + 1}`, `${i + 1}`] as const)
const newProposal: Proposal = { text: '', importance: 5 }

type Props = HeldBatch & {
  update: (update: ProposalsUpdate) => void
  onCommitted: (answer: CommitAnswer) => void
}

/** The reflections of a batch as they would be stored: each can be changed, removed, or written by hand. */
export function ProposalsForm({ batch, proposals, update, onCommitted }: Props): View {
  const actionState = useAction()
  const { min_entries: min, max_entries: max, entry_schema } = batch.reflection_contract
  const commit = async (): Promise<void> => {
    const entries = proposals.map(({ text, importance }) => ({ text: text.trim(), importance }))
    const body = { batch_id: batch.batch_id, entries }
    onCommitted(await call('POST /v1/memory/consolidate/commit', { body }))
  }
  const set = (index: number, changed: Partial<Proposal>): void =>
    update(before => before.map((one, at) => (at === index ? { ...one, ...changed } : one)))
  return html`<form class="stack" onSubmit=${onSubmit(() => actionState.run(commit))}>
    <ol class="plain stack">
      ${proposals.map(
        ({ text, importance }, index) =>
          html`<li key=${index} class="panel stack">
            ${textAreaField({
              label: `Reflection ${index + 1}`,
              value: text,
              onValue: text => set(index, { text }),
              rows: 3,
              required: true,
              maxlength: entry_schema.text.maxLength,
            })}
            <div class="filters">
              ${selectField({
                label: `Importance of reflection ${index + 1}`,
                value: String(importance),
                onValue: value => set(index, { importance: Number(value) }),
                choices: importances,
              })}
            </div>
            <div class="actions">
              <button
                type="button"
                class="button"
                aria-label=${`Remove reflection ${index + 1}`}
                onClick=${() => update(before => before.filter((_, at) => at !== index))}
              >
                Remove
              </button>
            </div>
          </li>`,
      )}
    </ol>
    ${faultNote(actionState.fault)}
    <div class="actions">
      ${
        proposals.length < max &&
        html`<button
          type="button"
          class="button"
          onClick=${() => update(before => [...before, newProposal])}
        >
          Add one by hand
        </button>`
      }
      ${
        proposals.length >= min &&
        html`<button class="button button-main" disabled=${actionState.isRunning}>
          ${actionState.isRunning ? 'Working …' : `Commit ${pluralize(proposals.length, 'reflection')}`}
        </button>`
      }
    </div>
  </form>`
}
