import { useState } from 'preact/hooks'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { DownloadButton } from '#api/console/app/parts/download-button.ts'
import { checkboxField } from '#api/console/app/parts/fields.ts'
import type { OrgProps } from '#api/console/app/org/org-queries.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'

/** Downloads all data of an organization as a file. */
export function OrgExport({ org }: OrgProps): View {
  const [vectors, setVectors] = useState(false)
  const path = `/v1/orgs/${org}/export?vectors=${vectors}`
  return html`<div class="panel stack">
    <p class="quiet">
      Settings, members, roles, tags, shared memories and the audit with its hashes; no key and
      nothing of a private vault.
    </p>
    ${checkboxField({
      label: 'With vectors',
      value: vectors,
      onValue: setVectors,
      hint: 'A much larger file.',
    })}
    <div class="actions">
      ${renderComponent(DownloadButton, {
        label: 'Download export',
        download: onBytes => downloadLines(path, 'organization', { onBytes }),
      })}
    </div>
  </div>`
}
