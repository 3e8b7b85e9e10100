import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { setCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, downloadButton } from '#api/console/app/parts/buttons.ts'
import { confirmDialog } from '#api/console/app/parts/dialogs.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { downloadLines } from '#api/console/app/vault/export.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }

/** Exports the account as a file, and erases it. */
export const Account = (): View =>
  page({
    title: 'Account',
    description: 'Everything that belongs to the account, with all of its keys and organizations.',
    children: html`${section(
      'Export',
      html`<div class="panel stack">
        <p>
          Every vault with its memories and sessions, every organization with what it shares, and
          what was done to them: one file of JSON lines.
        </p>
        <div class="actions">
          ${downloadButton({
            label: 'Export the account',
            kind: 'main',
            download: onBytes => downloadLines('/v1/account/export', 'account', { onBytes }),
          })}
        </div>
      </div>`,
    )}
    ${section('Erase', renderComponent(Erase, {}))}`,
  })

function Erase(): View {
  const [email, setEmail] = useState('')
  const [isAsking, setAsking] = useState(false)
  return html`<form class="panel stack" onSubmit=${onSubmit(() => setAsking(true))}>
      <p>
        Every key stops at once, those of members of its organizations too. Then everything is
        removed from both stores, and a signed receipt says what went and when. Its address opens
        then, and needs no key: keep it.
      </p>
      ${textField({ ...words.fields.accountEmail, type: 'email', value: email, onValue: setEmail })}
      <div class="actions">${button('Erase the account', undefined, { kind: 'danger' })}</div>
    </form>
    ${
      isAsking &&
      confirmDialog({
        title: 'Erase this account?',
        message: html`<p>
          All memories, keys, organizations and shared memories of <b>${email}</b> are erased for
          good. Nothing of them can be brought back.
        </p>`,
        verb: 'Erase',
        confirmationText: 'erase',
        act: async () => {
          const { receipt_id } = await call('POST /v1/account/erase', { body: { email } })
          setCredential(null)
          // The receipt needs no key.
          location.assign(`/v1/receipts/${receipt_id}`)
        },
        onClose: () => setAsking(false),
      })
    }`
}
