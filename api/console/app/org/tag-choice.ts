import { html, type View } from '#api/console/app/html.ts'
import { checkboxGroup } from '#api/console/app/parts/fields.ts'

type Props = {
  /** The tags of the organization. */
  labels: readonly string[]
  /** The tags the memory has: those that the organization does not have can only be taken off. */
  before: readonly string[]
  value: readonly string[]
  onValue: (tags: readonly string[]) => void
}

/** The tags of a shared memory, chosen from those of its organization: a misspelt one would hide it. */
export function tagChoice({ labels, before, value, onValue }: Props): View {
  const strange = before.filter(tag => !labels.includes(tag))
  const choices = [
    ...labels.map(label => [label, label] as const),
    ...strange.map(tag => [tag, `${tag} (no tag of the organization)`] as const),
  ]
  return choices.length === 0
    ? html`<p class="quiet">No tags are defined yet.</p>`
    : checkboxGroup({ label: 'Tags', value, onValue, choices })
}
