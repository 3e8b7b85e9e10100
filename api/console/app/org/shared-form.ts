import { useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { areaField, textField } from '#api/console/app/parts/fields.ts'
import { listOf, type Shared } from '#api/console/app/org/own.ts'
import { say } from '#api/console/app/said.ts'

type Props = {
  org: string
  /** Undefined seeds a new one. */
  memory?: Shared
  onClose: () => void
  onSaved: (memory: Shared | undefined) => void
}

/** The text and tags of a shared memory. */
export function SharedForm({ org, memory, onClose, onSaved }: Props): View {
  const [text, setText] = useState(memory?.text ?? '')
  const [tags, setTags] = useState(memory?.tags.join(', ') ?? '')
  const doing = useDoing()
  const act = async (): Promise<void> => {
    if (memory) {
      const params = { orgId: org, memId: memory.mem_id }
      const body = { ...(text !== memory.text && { text }), tags: listOf(tags) }
      onSaved(await call('PATCH /v1/orgs/:orgId/memories/:memId', { params, body }))
    } else {
      const body = { text, tags: listOf(tags) }
      onSaved(
        (await call('POST /v1/orgs/:orgId/memories', { params: { orgId: org }, body })).items[0],
      )
    }
    say(memory ? 'The memory is changed.' : 'The memory is shared.')
  }
  return dialogForm({
    title: memory ? 'Edit shared memory' : 'Seed a memory',
    verb: memory ? 'Save' : 'Share',
    doing,
    onClose,
    act,
    fields: html`<div class="stack">
      ${areaField({ label: 'Text', value: text, onValue: setText, rows: 6, required: true, maxlength: 32_000 })}
      ${textField({
        label: 'Tags',
        value: tags,
        onValue: setTags,
        hint: 'Separated by commas. A member sees it when their roles allow all of them.',
      })}
    </div>`,
  })
}
