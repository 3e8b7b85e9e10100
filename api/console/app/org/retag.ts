import { useState } from 'preact/hooks'
import { UserError } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useTags } from '#api/console/app/org/org-queries.ts'
import { dialogButton, dialogForm } from '#api/console/app/parts/dialogs.ts'
import { checkboxField, checkboxGroup } from '#api/console/app/parts/fields.ts'
import { listView } from '#api/console/app/parts/notes.ts'

/** The tags of a memory after a change. */
export type TagChange = (tags: readonly string[]) => string[]

type Props = {
  org: string
  /** The tags of each of the chosen memories. */
  chosen: readonly (readonly string[])[]
  /** Whether the memories are approved as well. */
  approves: 'always' | 'choice' | 'never'
  onRetag: (retagged: TagChange, approve: boolean) => void
}

/** A button that puts tags on several memories, and takes others off. */
export const retagButton = (props: Props): View =>
  dialogButton('Retag selected', onClose => renderComponent(RetagForm, { ...props, onClose }))

function RetagForm({ org, chosen, approves, onRetag, onClose }: Props & { onClose: () => void }) {
  const tags = useTags(org)
  const labels = { ...tags, items: tags.items.map(({ label }) => label) }
  const [added, setAdded] = useState<readonly string[]>([])
  const [removed, setRemoved] = useState<readonly string[]>([])
  const [approve, setApprove] = useState(approves !== 'never')
  const present = [...new Set(chosen.flat())].sort()
  const act = async (): Promise<void> => {
    if (added.length + removed.length === 0) throw new UserError('Choose a tag first')
    onRetag(
      tags => [...new Set([...tags.filter(tag => !removed.includes(tag)), ...added])],
      approve,
    )
  }
  const group = (
    label: string,
    choices: readonly string[],
    [value, onValue]: [readonly string[], (value: readonly string[]) => void],
  ): View =>
    checkboxGroup({ label, value, onValue, choices: choices.map(tag => [tag, tag] as const) })
  return dialogForm({
    title: `Retag ${pluralize(chosen.length, 'memory', 'memories')}`,
    verb: approves === 'always' ? 'Retag and approve' : 'Retag',
    onClose,
    act,
    fields: html`${listView(labels, {
        what: 'the tags',
        empty: html`<p class="quiet">No tags are defined yet.</p>`,
        show: tags => group('Add', tags, [added, setAdded]),
      })}
      ${present.length > 0 && group('Take off', present, [removed, setRemoved])}
      ${approves === 'choice' && checkboxField({ label: 'Approve them, too', value: approve, onValue: setApprove })}
      <p class="field-hint">A member sees a memory when their roles allow all of its tags.</p>`,
  })
}
