import { useState } from 'preact/hooks'
import { call, Told } from '#api/console/app/call.ts'
import { mayWrite } from '#api/console/app/credential.ts'
import { html, part, type Children, type View } from '#api/console/app/html.ts'
import { chip, importanceChip, tierChip } from '#api/console/app/parts/chips.ts'
import { confirm } from '#api/console/app/parts/confirm.ts'
import { say } from '#api/console/app/said.ts'
import { EditDialog, type EditDialogProps } from '#api/console/app/vault/edit-dialog.ts'
import { Lineage } from '#api/console/app/vault/lineage.ts'
import type { Shown } from '#api/console/app/vault/shown.ts'
import { agoOf, isoOf, momentOf, spanOf, timeOf } from '#api/console/app/words.ts'

type Props = {
  memory: Shown
  /** In place of the plain text. */
  text?: Children
  /** Why it is shown here. */
  why?: Children
  /** Stands under its day. */
  dayKnown?: boolean
  onChange: EditDialogProps['onChange']
  onGone: (id: string) => void
}

/** Longer texts are shown from their beginning. */
const wholeMax = 700

/** A memory with what can be done about it. */
export function MemoryCard({ memory, text, why, dayKnown, onChange, onGone }: Props): View {
  const [open, setOpen] = useState<'edit' | 'delete' | 'lineage'>()
  const [whole, setWhole] = useState(memory.text.length <= wholeMax)
  const close = (): void => setOpen(undefined)
  const own = memory.source !== 'org'
  const short = memory.text.replace(/\s+/g, ' ').slice(0, 60)
  return html`<article class=${`memory memory-${memory.tier}`}>
    <header class="memory-head">
      <span class="memory-who">${memory.name ?? memory.role}</span>
      <time datetime=${isoOf(memory.at)} title=${agoOf(memory.at)}>
        ${dayKnown ? timeOf(memory.at) : momentOf(memory.at)}
      </time>
      ${tierChip(memory.tier)} ${importanceChip(memory.importance)}
      ${memory.source !== 'core' && chip(memory.source === 'org' ? 'Team' : 'Session', 'tag')}
      ${memory.expires && chip(`Expires ${agoOf(memory.expires)}`, 'busy', momentOf(memory.expires))}
      ${memory.consolidated && chip('Consolidated', 'good', 'A reflection covers it')}
    </header>
    <p class=${whole ? 'memory-text' : 'memory-text memory-cut'}>${text ?? memory.text}</p>
    ${
      !whole &&
      html`<button type="button" class="button button-link" onClick=${() => setWhole(true)}>
        Show the whole text
      </button>`
    }
    ${memory.covers && html`<p class="quiet">About ${spanOf(memory.covers)}</p>`}
    ${why && html`<div class="memory-why">${why}</div>`}
    ${
      own &&
      html`<footer class="memory-actions">
        ${action('Lineage', short, () => setOpen('lineage'))}
        ${
          mayWrite() && [
            action('Edit', short, () => setOpen('edit')),
            action('Delete', short, () => setOpen('delete')),
          ]
        }
      </footer>`
    }
    ${open === 'lineage' && part(Lineage, { memory, onClose: close })}
    ${open === 'edit' && part(EditDialog, { memory, onClose: close, onChange })}
    ${
      open === 'delete' &&
      confirm({
        title: 'Delete this memory?',
        words: html`<blockquote class="quote">
            ${short}${memory.text.length > 60 && ' …'}
          </blockquote>
          <p>It is removed from both stores at once, and cannot be brought back.</p>`,
        verb: 'Delete',
        act: async () => {
          await forget(memory.id)
          onGone(memory.id)
          say('The memory is deleted.')
        },
        onClose: close,
      })
    }
  </article>`
}

const action = (name: string, about: string, act: () => void): View =>
  html`<button
    type="button"
    class="button button-plain"
    aria-label=${`${name}: ${about}`}
    onClick=${act}
  >
    ${name}
  </button>`

async function forget(id: string): Promise<void> {
  const answer = await call('POST /v1/memory/delete-ids', { body: { ids: [id] } })
  if ('failed' in answer && answer.failed.length > 0) throw new Told('It could not be deleted now')
}
