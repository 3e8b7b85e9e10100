import { useState } from 'preact/hooks'
import { call, filled } from '#api/console/app/api-call.ts'
import { formatDateTime } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { useTags } from '#api/console/app/org/org-queries.ts'
import { chip, metadataChips, sureChip, tagChips, timeView } from '#api/console/app/parts/chips.ts'
import {
  confirmButton,
  dialogButton,
  dialogForm,
  actionButton,
  dialog,
} from '#api/console/app/parts/dialogs.ts'
import { checkboxGroup, textAreaField } from '#api/console/app/parts/fields.ts'
import { listView } from '#api/console/app/parts/notes.ts'
import { selectBox, type Selection } from '#api/console/app/parts/selection.ts'
import { useListing } from '#api/console/app/queries.ts'
import type {
  OrgTag,
  SharedMemory,
  SharedRevision,
  SharedSnapshot,
} from '#api/contract/generated/types.ts'

type Props = {
  org: string
  memory: SharedMemory
  selection: Selection
  onChanged: (memory: SharedMemory) => void
  onDeleted: (id: string) => void
  /** After a deletion was taken back. */
  onRestored: () => void
}

/** A shared memory with the actions of an admin. */
export function sharedCard({
  org,
  memory,
  selection,
  onChanged,
  onDeleted,
  onRestored,
}: Props): View {
  const { mem_id: id, text, confidence } = memory
  const params = { orgId: org, memId: id }
  const excerpt = text.slice(0, 60)
  const action = { kind: 'plain', about: excerpt } as const
  return html`<article class="memory stack-tight">
    <header class="memory-head chips">
      ${selectBox(selection, id, excerpt)} <span class="memory-who">${memory.author}</span>
      ${timeView(memory.acquired_at)} ${memory.reviewed ? chip('Reviewed') : sureChip(confidence)}
      ${
        memory.sensitivity === 'restricted' &&
        chip('Restricted', 'bad', 'Only roles that see everything see it')
      }
    </header>
    <p class="memory-text">${text}</p>
    <p class="chips">${tagChips(memory.tags)} ${metadataChips(memory.metadata)}</p>
    <footer class="actions">
      ${dialogButton(
        'History',
        onClose => renderComponent(SharedHistory, { org, id, onClose, onRestored: onChanged }),
        action,
      )}
      ${dialogButton(
        'Edit',
        onClose =>
          renderComponent(SharedForm, {
            org,
            memory,
            onClose,
            onSaved: saved => saved && onChanged(saved),
          }),
        action,
      )}
      ${confirmButton('Delete', {
        ...action,
        title: 'Delete this shared memory?',
        message: html`<blockquote class="quote">${excerpt}${text.length > 60 && ' …'}</blockquote>
          <p>Members no longer see it. For 30 days the audit can bring it back.</p>`,
        act: () => call('DELETE /v1/orgs/:orgId/memories/:memId', { params }),
        onDone: () => onDeleted(id),
        done: 'The memory is deleted.',
        undo: async () => {
          await call('POST /v1/orgs/:orgId/memories/:memId/restore', { params, body: {} })
          onRestored()
        },
      })}
    </footer>
  </article>`
}

type FormProps = {
  org: string
  /** Undefined creates a shared memory. */
  memory?: SharedMemory
  onClose: () => void
  onSaved: (memory: SharedMemory | undefined) => void
}

export function SharedForm({ org, memory, onClose, onSaved }: FormProps): View {
  const before = memory?.tags ?? []
  const [text, setText] = useState(memory?.text ?? '')
  const [chosen, setChosen] = useState<readonly string[]>(before)
  const existing = useTags(org)
  const save = async (): Promise<void> => {
    const tags = [...chosen]
    if (memory) {
      const params = { orgId: org, memId: memory.mem_id }
      const body = { ...filled({ text: text === memory.text ? '' : text }), tags }
      onSaved(await call('PATCH /v1/orgs/:orgId/memories/:memId', { params, body }))
    } else {
      const request = { params: { orgId: org }, body: { text, tags } }
      onSaved((await call('POST /v1/orgs/:orgId/memories', request)).items[0])
    }
  }
  return dialogForm({
    title: memory ? 'Edit shared memory' : 'Seed a memory',
    verb: memory ? 'Save' : 'Share',
    onClose,
    act: save,
    done: memory ? 'The memory is changed.' : 'The memory is shared.',
    fields: html`${textAreaField({ label: 'Text', value: text, onValue: setText, rows: 6, required: true, maxlength: 32_000 })}
      ${listView(existing, {
        what: 'the tags',
        empty: tagChoice({ tags: [], before, value: chosen, onValue: setChosen }),
        show: tags => tagChoice({ tags, before, value: chosen, onValue: setChosen }),
      })}
      <p class="field-hint">A member sees it when their roles allow all of its tags.</p>`,
  })
}

type ChoiceProps = {
  tags: readonly OrgTag[]
  /** The tags of the memory. Those that the organization does not have can only be taken off. */
  before: readonly string[]
  value: readonly string[]
  onValue: (tags: readonly string[]) => void
}

/** A choice among the tags of the organization: a misspelt one would hide a memory. */
export function tagChoice({ tags, before, value, onValue }: ChoiceProps): View {
  const labels = tags.map(({ label }) => label)
  const unknown = before.filter(tag => !labels.includes(tag))
  const choices = [
    ...labels.map(label => [label, label] as const),
    ...unknown.map(tag => [tag, `${tag} (no tag of the organization)`] as const),
  ]
  return choices.length === 0
    ? html`<p class="quiet">No tags are defined yet.</p>`
    : checkboxGroup({ label: 'Tags', value, onValue, choices })
}

type HistoryProps = {
  org: string
  id: string
  onClose: () => void
  onRestored: (memory: SharedMemory) => void
}

/** The versions of a shared memory, each of which can be restored. */
export function SharedHistory({ org, id, onClose, onRestored }: HistoryProps): View {
  const params = { orgId: org, memId: id }
  const route = 'GET /v1/orgs/:orgId/memories/:memId/history'
  const list = useListing(route, { params }, ({ revisions }) => revisions)
  const restore = async (event_id: string): Promise<void> => {
    const request = { params, body: { event_id } }
    onRestored(await call('POST /v1/orgs/:orgId/memories/:memId/restore', request))
    list.refetch()
  }
  const restoreButton = (eventId: string): View =>
    actionButton('Bring this back', {
      act: () => restore(eventId),
      done: 'The memory is as it was.',
    })
  return dialog({
    title: 'History',
    wide: true,
    onClose,
    children: html`${listView(list, {
      what: 'the history',
      empty: ['No changes in the last 30 days', 'The audit goes back further, without texts.'],
      show: revisions =>
        html`<ol class="plain">
          ${revisions.map(({ events: [event], ...revision }) => html`<li key=${event?.event_id} class="revision stack">${revisionView(revision)} ${revision.before && restoreButton(event!.event_id)}</li>`)}
        </ol>`,
    })}`,
  })
}

const revisionView = ({
  kind,
  actor,
  created_at,
  before,
  after,
}: Omit<SharedRevision, 'events'>): View =>
  html`<p>${chip(kind)} <b>${actor}</b> <span class="quiet">${formatDateTime(created_at)}</span></p>
    ${before && snapshotView('Before', before)} ${snapshotView('After', after)}`

const snapshotView = (name: string, snapshot: SharedSnapshot | null): View =>
  html`<div class="revision-side">
    <span class="quiet">${name}</span>
    <p class="memory-text">${snapshot?.text ?? 'Deleted'}</p>
    ${snapshot && tagChips(snapshot.tags)}
  </div>`
