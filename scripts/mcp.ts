import './bridge/main.ts'
