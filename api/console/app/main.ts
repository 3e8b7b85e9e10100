import { render } from 'preact'
import { App } from '#api/console/app/app.ts'
import { part } from '#api/console/app/html.ts'
import { theme, wear } from '#api/console/app/theme.ts'

wear(theme())
render(part(App, {}), document.querySelector('#console')!)
