import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { textAreaField } from '#api/console/app/parts/fields.ts'
import { queryView } from '#api/console/app/parts/query-view.ts'
import { useTags, type SharedMemory } from '#api/console/app/org/org-queries.ts'
import { tagChoice } from '#api/console/app/org/tag-choice.ts'
import { showToast } from '#api/console/app/toasts.ts'

type Props = {
  org: string
  /** Undefined creates a shared memory. */
  memory?: SharedMemory
  onClose: () => void
  onSaved: (memory: SharedMemory | undefined) => void
}

/** A form for the text and tags of a shared memory. */
export function SharedForm({ org, memory, onClose, onSaved }: Props): View {
  const [text, setText] = useState(memory?.text ?? '')
  const before = memory?.tags ?? []
  const [tags, setTags] = useState<readonly string[]>(before)
  const tagsQuery = useTags(org)
  const actionState = useAction()
  const act = async (): Promise<void> => {
    if (memory) {
      const params = { orgId: org, memId: memory.mem_id }
      const body = { ...(text !== memory.text && { text }), tags: [...tags] }
      onSaved(await call('PATCH /v1/orgs/:orgId/memories/:memId', { params, body }))
    } else {
      const body = { text, tags: [...tags] }
      onSaved(
        (await call('POST /v1/orgs/:orgId/memories', { params: { orgId: org }, body })).items[0],
      )
    }
    showToast(memory ? 'The memory is changed.' : 'The memory is shared.')
  }
  return dialogForm({
    title: memory ? 'Edit shared memory' : 'Seed a memory',
    verb: memory ? 'Save' : 'Share',
    actionState,
    onClose,
    act,
    fields: html`<div class="stack">
      ${textAreaField({ label: 'Text', value: text, onValue: setText, rows: 6, required: true, maxlength: 32_000 })}
      ${queryView(tagsQuery, 'the tags', all =>
        tagChoice({ labels: all.map(({ label }) => label), before, value: tags, onValue: setTags }),
      )}
      <p class="field-hint">A member sees it when their roles allow all of its tags.</p>
    </div>`,
  })
}
